"""One label for each measured series."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
from foveal.tasks.defaults import Defaults, DefaultsRequest
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.labeling import ClassificationTask
from foveal.tasks.shapes.series import SeriesLabelingTask

MAX_CLOSED_FORM = 5000
"""Series at most for which the default classifier is in closed form."""


class SeriesClassificationTask(SeriesLabelingTask, ClassificationTask):
    name = "series-classification"
    purpose = "Label each series."
    preset = "series-classification"
    datasets = ("basic-motions", "japanese-vowels")
    loss_unit = "series"

    def defaults(self, request: DefaultsRequest) -> Defaults:
        rows = self.count_training_rows(request.data)
        if not 0 < rows <= MAX_CLOSED_FORM or request.trains:
            return Defaults(self.preset)
        return Defaults(
            "minirocket",
            f"{rows:,} series are few: fixed convolutions and a classifier in closed form",
            undo=f"--model {self.preset}",
        )

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 13 for a table of values with a label, 1 for files of series."""
        if data.kind == "table" and {"values", "label"} <= data.columns:
            return Fit(13, "there are the columns values and label")
        return Fit(1, data.evidence.reason) if data.kind == "series" else NO_FIT
