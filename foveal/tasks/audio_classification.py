"""One label for each recording."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
from foveal.tasks.defaults import Defaults, DefaultsRequest
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.audio import AudioTask
from foveal.tasks.shapes.labeling import ClassificationTask

MAX_CLOSED_FORM = 1000
"""Recordings at most for which the default classifier is in closed form."""


class AudioClassificationTask(AudioTask, ClassificationTask):
    name = "audio-classification"
    purpose = "Label each recording."
    preset = "audio-classification"
    columns = ("label",)
    encoders = (*AudioTask.encoders, "series-network")
    loss_unit = "recording"
    examples_in_words = "labeled recordings"
    speed_unit = "frames"

    def defaults(self, request: DefaultsRequest) -> Defaults:
        rows = self.count_training_rows(request.data)
        if not 0 < rows <= MAX_CLOSED_FORM or request.trains:
            return Defaults(self.preset)
        return Defaults(
            "audio-minirocket",
            f"{rows:,} recordings are few: fixed convolutions and a classifier in closed form",
            undo=f"--model {self.preset}",
        )

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 1 for recordings."""
        return Fit(1, data.evidence.reason) if data.kind == "audio" else NO_FIT
