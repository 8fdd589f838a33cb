"""A tag for each word of a sentence."""

from collections.abc import Mapping
from typing import Any

from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.open import OpenedData
from foveal.data.pairs.pair import PairProcessor
from foveal.data.text.words_source import TagTarget, WordsSource
from foveal.encoders.text import TextEncoder
from foveal.tasks.results import TaskSummary
from foveal.tasks.shapes.examples import text_encoder_for
from foveal.tasks.shapes.labeling import TaggingTask, summarize_labels


class TextTaggingTask(TaggingTask):
    name = "tagging"
    purpose = "Tag each word of a sentence."
    preset = "tagging"
    source = WordsSource()
    target = TagTarget()
    source_kind = "text"
    encoders = ("text",)
    columns = ("tags",)
    loss_unit = "word"
    place = "word"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> int:
        """Return 23 for named tags, 14 for a table with tokens and tags, 1 for CoNLL files."""
        if data.kind in ("table", "text") and "tags" in named:
            return 23
        if data.kind == "table" and {"tokens", "tags"} <= data.columns:
            return 14
        return int(data.kind == "conll")

    def encoder(self) -> TextEncoder:
        return text_encoder_for(self.config, None if self.processor is None else self.processor.source)

    def summarize(self, prepared: PreparedData[PairProcessor, SplitData[Examples]]) -> TaskSummary:
        source, tags = prepared.processor.source, prepared.processor.target.labels
        labels = f"{summarize_labels(tags)}{self.for_each_place()}"
        task = f"{self.name}: {labels} from {source.size:,} {source.kind} tokens"
        return TaskSummary("tagged sentences", task, len(tags), "words")

    def describe_size(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['words']:,} words"
