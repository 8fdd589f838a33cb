"""Measured series: one label for each, or a label for each of its steps."""

from abc import ABC
from typing import Any, ClassVar

from foveal.config import Config
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import Prepared
from foveal.data.core.split_data import Part
from foveal.data.series.series_formats import LabelEachStep, OneLabel, SeriesInputs
from foveal.encoders.series import VectorEncoder
from foveal.models.encoder import vector_encoder
from foveal.tasks.base import Described
from foveal.tasks.labeling import ChoosingKind, PlacesKind, WholeKind, some

CHANNELS = 6
"""Of an outline."""


class MeasuredKind(ChoosingKind, ABC):
    """What is read: series of equally many channels."""

    told: ClassVar[str]
    """The task, with a place for its labels."""

    def encoder(self, config: Config, inputs: SeriesInputs | None = None) -> VectorEncoder:
        channels = CHANNELS if inputs is None else inputs.channels
        return vector_encoder(config.model.encoder, channels, config.data.longest)

    def describe(self, config: Config, data: Prepared[SeriesInputs, Part[Examples]]) -> Described:
        labels, count = data.inputs.labels, data.inputs.channels
        told = f"{self.told.format(some(labels))} from {count} channel{'s' if count > 1 else ''}"
        return Described("labelled series", told, len(labels), "time steps")

    def amount(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['steps']:,} steps"


class SeriesKind(MeasuredKind, WholeKind):
    told = "series: {}"

    def __init__(self) -> None:
        super().__init__(OneLabel())


class StepsKind(MeasuredKind, PlacesKind):
    told = "steps: {} for each step,"

    def __init__(self) -> None:
        super().__init__(LabelEachStep())
