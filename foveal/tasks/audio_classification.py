"""One label for each recording."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
from foveal.tasks.defaults import ClosedForm
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.audio import AudioTask
from foveal.tasks.shapes.labeling import ClassificationTask


class AudioClassificationTask(AudioTask, ClassificationTask):
    name = "audio-classification"
    purpose = "Label each recording."
    preset = "audio-classification"
    columns = ("label",)
    encoders = (*AudioTask.encoders, "series-network")
    closed_form = ClosedForm("audio-minirocket", 1000, "recordings", "fixed convolutions")
    loss_unit = "recording"
    examples_in_words = "labeled recordings"
    speed_unit = "frames"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 1 for recordings."""
        return Fit(1, data.evidence.reason) if data.kind == "audio" else NO_FIT
