"""A text for each clip."""

from collections.abc import Mapping

from foveal.data.open import OpenedData
from foveal.tasks.shapes.captions import CaptioningTask
from foveal.tasks.shapes.clips import ClipTask


class VideoCaptioningTask(ClipTask, CaptioningTask):
    name = "video-captioning"
    purpose = "Describe a clip by a text."
    preset = "video-captioning"
    reads_files = "clips"
    examples_in_words = "clips with a text"
    no_attention_map = "clips"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> int:
        """Return 2 for clips with a text and no label."""
        text, label = str(named.get("text", "text")), str(named.get("label", "label"))
        return 2 if data.kind == "clips" and text in data.columns and label not in data.columns else 0

    def source_in_words(self) -> str:
        return f"frames of {super().source_in_words()}"
