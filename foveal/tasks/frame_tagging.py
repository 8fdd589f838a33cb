"""A label for each frame of a clip."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
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
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> int:
        """Return 3 for clips with labels, unless the user names the column of a label or text."""
        user_names_target = "label" in named or "text" in named
        return 3 if data.kind == "clips" and "labels" in data.columns and not user_names_target else 0
