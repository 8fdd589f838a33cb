"""A text for each clip."""

from collections.abc import Mapping

from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.open import OpenedData
from foveal.data.pairs.pair import PairProcessor
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.video.clip_examples import ClipExamples
from foveal.tasks.results import TaskSummary
from foveal.tasks.shapes.captions import CaptioningTask
from foveal.tasks.shapes.clips import ClipTask


class VideoCaptioningTask(ClipTask, CaptioningTask):
    name = "video-captioning"
    purpose = "Describe a clip by a text."
    preset = "video-captioning"
    reads_files = "clips"
    no_attention_map = "clips"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> int:
        """Return 2 for clips with a text and no label."""
        text, label = str(named.get("text", "text")), str(named.get("label", "label"))
        return 2 if data.kind == "clips" and text in data.columns and label not in data.columns else 0

    def summarize(self, prepared: PreparedData[PairProcessor, SplitData[ClipExamples]]) -> TaskSummary:
        size, target = self.config.data.image.size, prepared.processor.target.tokenizer
        task = f"{self.name}: frames of {size} x {size} pixels to {target.size:,} {target.kind} tokens"
        return TaskSummary("clips with a text", task, SpecialTokens(target.size).vocab_size, "target tokens")
