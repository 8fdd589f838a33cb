"""Tasks that read measured series of equally many channels."""

from abc import ABC
from typing import Any

from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.series.series_formats import SeriesProcessor
from foveal.encoders.series import SeriesEncoder
from foveal.models.encoder import series_encoder
from foveal.tasks.base import TaskSummary
from foveal.tasks.shapes.labeling import LabelingTask, summarize_labels

DEFAULT_CHANNELS = 6
"""The number of channels in `example_model`."""


class SeriesTask(LabelingTask, ABC):
    """Labels of series or of their steps."""

    reads = "series"
    encoders = ("series",)
    length_unit = "steps"

    def encoder(self) -> SeriesEncoder:
        channels = DEFAULT_CHANNELS if self.processor is None else self.processor.channels
        return series_encoder(self.config.model.encoder, channels, self.config.data.max_length)

    def summarize(self, prepared: PreparedData[SeriesProcessor, SplitData[Examples]]) -> TaskSummary:
        labels, count = prepared.processor.labels, prepared.processor.channels
        task = f"{self.name}: {summarize_labels(labels)}{self.for_each_place()}"
        channels = f"{count} channel{'s' if count > 1 else ''}"
        return TaskSummary("labelled series", f"{task} from {channels}", len(labels), "time steps")

    def describe_size(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['steps']:,} steps"
