"""One label for each clip."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.clips import ClipLabelingTask
from foveal.tasks.shapes.labeling import ClassificationTask


class VideoClassificationTask(ClipLabelingTask, ClassificationTask):
    name = "video-classification"
    purpose = "Label each clip."
    preset = "video-classification"
    columns = ("label",)
    default_classes = 10
    loss_unit = "clip"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 1 for clips."""
        return Fit(1, data.evidence.reason) if data.kind == "clips" else NO_FIT
