"""Measured series: one label for each, or a label for each of its steps."""

from typing import Any

from foveal.build.choices import PlacesKind, WholeKind, some
from foveal.build.kind import Described
from foveal.config import Config
from foveal.data.measured import LabelEachStep, Measured, OneLabel, SeriesInputs
from foveal.data.prepared import Prepared
from foveal.encoders.vectors import VectorEncoder
from foveal.models.encoder import vector_encoder

CHANNELS = 6
"""Of an outline."""


class SeriesKind(WholeKind):
    def __init__(self) -> None:
        super().__init__(OneLabel())

    def encoder(self, config: Config, inputs: SeriesInputs | None = None) -> VectorEncoder:
        return _encoder(config, inputs)

    def describe(self, config: Config, data: Prepared[SeriesInputs, Measured]) -> Described:
        return _described(data.inputs, f"series: {some(data.inputs.labels)}")

    def amount(self, facts: dict[str, Any]) -> str:
        return _amount(facts)


class StepsKind(PlacesKind):
    def __init__(self) -> None:
        super().__init__(LabelEachStep())

    def encoder(self, config: Config, inputs: SeriesInputs | None = None) -> VectorEncoder:
        return _encoder(config, inputs)

    def describe(self, config: Config, data: Prepared[SeriesInputs, Measured]) -> Described:
        return _described(data.inputs, f"steps: {some(data.inputs.labels)} for each step,")

    def amount(self, facts: dict[str, Any]) -> str:
        return _amount(facts)


def _encoder(config: Config, inputs: SeriesInputs | None) -> VectorEncoder:
    channels = CHANNELS if inputs is None else inputs.channels
    return vector_encoder(config.model.encoder, channels, config.data.longest)


def _described(inputs: SeriesInputs, told: str) -> Described:
    channels = f"{inputs.channels} channel{'s' if inputs.channels > 1 else ''}"
    return Described("labelled series", f"{told} from {channels}", len(inputs.labels), "time steps")


def _amount(facts: dict[str, Any]) -> str:
    return f"{facts['examples']:,} of {facts['steps']:,} steps"
