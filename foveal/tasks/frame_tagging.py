"""A label for each frame of a clip."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.shapes.clips import ClipLabelingTask
from foveal.tasks.shapes.labeling import TaggingTask


class FrameTaggingTask(ClipLabelingTask, TaggingTask):
    name = "frame-tagging"
    purpose = "Label each frame of a clip."
    preset = "frame-tagging"
    datasets = ("moving-digits",)
    default_classes = 80
    loss_unit = "frame"
    place = "frame"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 3 for clips with labels, unless the user names the column of a label or text."""
        user_names_target = "label" in named or "text" in named
        if data.kind != "clips" or "labels" not in data.columns or user_names_target:
            return NO_FIT
        return Fit(3, f"{data.evidence.reason}, and labels for each frame")
