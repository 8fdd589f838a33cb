"""A tag for each word of a sentence."""

from typing import Any

from foveal.config import Config
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.text import tagging
from foveal.data.text.tagging import TaggingProcessor
from foveal.encoders.text import TextEncoder
from foveal.tasks.base import TaskSummary
from foveal.tasks.examples import text_encoder_for
from foveal.tasks.labeling import TaggingTask, summarize_labels


class TextTaggingTask(TaggingTask):
    def __init__(self) -> None:
        super().__init__(tagging)

    def encoder(self, config: Config, processor: TaggingProcessor | None = None) -> TextEncoder:
        return text_encoder_for(config, None if processor is None else processor.source)

    def summarize(
        self, config: Config, data: PreparedData[TaggingProcessor, SplitData[Examples]]
    ) -> TaskSummary:
        source, tags = data.processor.source, data.processor.labels
        told = f"tagging: {summarize_labels(tags)} for each word, from {source.size:,} {source.kind} tokens"
        return TaskSummary("tagged sentences", told, len(tags), "words")

    def describe_size(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['words']:,} words"
