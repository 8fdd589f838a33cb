"""One label for each text."""

from foveal.build.choices import WholeKind, some
from foveal.build.examples import reader_of
from foveal.build.kind import Described
from foveal.config import Config
from foveal.data import labelled
from foveal.data.examples import Examples
from foveal.data.labelled import LabelInputs
from foveal.data.part import Part
from foveal.data.prepared import Prepared
from foveal.encoders.text import TextEncoder


class LabelKind(WholeKind):
    def __init__(self) -> None:
        super().__init__(labelled)

    def encoder(self, config: Config, inputs: LabelInputs | None = None) -> TextEncoder:
        return reader_of(config, None if inputs is None else inputs.source)

    def describe(self, config: Config, data: Prepared[LabelInputs, Part[Examples]]) -> Described:
        source, labels = data.inputs.source, data.inputs.labels
        told = f"classify: {some(labels)} from {source.size:,} {source.kind} tokens"
        return Described("labelled texts", told, len(labels), "tokens")
