"""Tasks that read measured series with a fixed number of channels."""

from abc import ABC
from typing import Any, ClassVar

from torch import nn

from foveal.config import ConfigError
from foveal.data.pairs.source import Source
from foveal.data.series.series_source import SeriesSource
from foveal.models.encoder_registry import SeriesSizes, make_encoder
from foveal.models.series_networks import networks_with_steps, series_network
from foveal.tasks.shapes.examples import ExampleTask
from foveal.tasks.shapes.labeling import LabelingTask

DEFAULT_CHANNELS = 6
"""The number of channels in `example_model`."""


class SeriesTask(ExampleTask, ABC):
    """Base class of tasks whose examples are series."""

    source: ClassVar[Source[Any]] = SeriesSource()
    source_kind = "series"
    batch_setting = "data.series.batch_size"
    encoders = ("series", "series-network")
    encoder_source = "series"
    length_unit = "steps"

    def check(self) -> None:
        super().check()
        encoder = self.config.model.encoder
        if encoder.kind == "series-network":
            has_steps = series_network(encoder.network).has_steps
            if self.target.each_place and not has_steps:
                raise ConfigError(
                    f"model.encoder.network={encoder.network} makes one vector of a series, and "
                    f"task.name={self.name} labels each step; set it to {' or '.join(networks_with_steps())}"
                )

    @property
    def source_sizes(self) -> SeriesSizes:
        channels = DEFAULT_CHANNELS if self.processor is None else self.processor.source.channels
        return SeriesSizes(channels, self.config.data.max_length)

    def encoder(self) -> nn.Module:
        return make_encoder(self.config.model.encoder, self.source_sizes)

    def source_in_words(self) -> str:
        """Return a description of the channels of a series."""
        count = self.processor.source.channels
        return f"{count} channel{'s' if count > 1 else ''}"

    def describe_size(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['steps']:,} steps"


class SeriesLabelingTask(SeriesTask, LabelingTask, ABC):
    """Base class of tasks that label series or their steps."""

    examples_in_words = "labeled series"
    speed_unit = "time steps"
