"""A text for each measured series."""

from collections.abc import Mapping

from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.open import OpenedData
from foveal.data.pairs.pair import PairProcessor
from foveal.data.text.special_tokens import SpecialTokens
from foveal.tasks.results import TaskSummary
from foveal.tasks.shapes.captions import CaptioningTask
from foveal.tasks.shapes.series import SeriesTask


class SeriesCaptioningTask(SeriesTask, CaptioningTask):
    name = "series-captioning"
    purpose = "Describe a series by a text."
    preset = "series-captioning"
    reads_files = "series"
    no_attention_map = "series"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> int:
        """Return 10 for a table of values with a text, and no label."""
        columns = {"values", str(named.get("text", "text"))}
        labeled = {"label", "labels"} & data.columns
        return 10 if data.kind == "table" and columns <= data.columns and not labeled else 0

    def summarize(self, prepared: PreparedData[PairProcessor, SplitData[Examples]]) -> TaskSummary:
        target = prepared.processor.target.tokenizer
        task = f"{self.name}: {self.source_in_words()} to {target.size:,} {target.kind} tokens"
        return TaskSummary("series with a text", task, SpecialTokens(target.size).vocab_size, "target tokens")
