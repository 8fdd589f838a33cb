"""A task: the mood of a text, in tables with a column `mood`."""

from collections.abc import Mapping

import foveal
from foveal.config import DataConfig
from foveal.data.open import OpenedData
from foveal.data.pairs.labels import LabelTarget
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.text_classification import TextClassificationTask


class MoodDataConfig(DataConfig):
    mood: str = "mood"
    """Column of the moods."""


class MoodTarget(LabelTarget):
    settings = ("data.mood",)

    def column(self, config: DataConfig) -> str:
        assert isinstance(config, MoodDataConfig)
        return config.mood


@foveal.register_task("moods")
class MoodTask(TextClassificationTask):
    purpose = "Tell the mood of each text."
    DataSettings = MoodDataConfig
    target = MoodTarget()
    columns = ("text", "mood")
    datasets = ("short-reviews",)

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 25 for a table with a text and a mood."""
        if data.kind == "table" and {"text", str(named.get("mood", "mood"))} <= data.columns:
            return Fit(25, "there are the columns text and mood")
        return NO_FIT
