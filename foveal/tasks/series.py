"""Measured series: one label for each, or a label for each of its steps."""

from abc import ABC
from typing import Any, ClassVar

from foveal.config import Config
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.series.series_formats import SeriesClassificationFormat, SeriesProcessor, SeriesTaggingFormat
from foveal.encoders.series import SeriesEncoder
from foveal.models.encoder import series_encoder
from foveal.tasks.base import TaskSummary
from foveal.tasks.labeling import ClassificationTask, LabelingTask, TaggingTask, summarize_labels

DEFAULT_CHANNELS = 6
"""Of an outline."""


class SeriesTask(LabelingTask, ABC):
    """What is read: series of equally many channels."""

    summary_template: ClassVar[str]
    """The task, with a place for its labels."""

    def encoder(self, config: Config, processor: SeriesProcessor | None = None) -> SeriesEncoder:
        channels = DEFAULT_CHANNELS if processor is None else processor.channels
        return series_encoder(config.model.encoder, channels, config.data.max_length)

    def summarize(
        self, config: Config, data: PreparedData[SeriesProcessor, SplitData[Examples]]
    ) -> TaskSummary:
        labels, count = data.processor.labels, data.processor.channels
        told = self.summary_template.format(summarize_labels(labels))
        told += f" from {count} channel{'s' if count > 1 else ''}"
        return TaskSummary("labelled series", told, len(labels), "time steps")

    def describe_size(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['steps']:,} steps"


class SeriesClassificationTask(SeriesTask, ClassificationTask):
    summary_template = "series-classification: {}"

    def __init__(self) -> None:
        super().__init__(SeriesClassificationFormat())


class SeriesTaggingTask(SeriesTask, TaggingTask):
    summary_template = "series-tagging: {} for each step,"

    def __init__(self) -> None:
        super().__init__(SeriesTaggingFormat())
