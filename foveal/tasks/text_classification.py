"""One label for each text."""

from foveal.config import Config
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import Prepared
from foveal.data.core.split_data import Part
from foveal.data.text import text_classification
from foveal.data.text.text_classification import LabelInputs
from foveal.encoders.text import TextEncoder
from foveal.tasks.base import Described
from foveal.tasks.examples import reader_of
from foveal.tasks.labeling import WholeKind, some


class LabelKind(WholeKind):
    def __init__(self) -> None:
        super().__init__(text_classification)

    def encoder(self, config: Config, inputs: LabelInputs | None = None) -> TextEncoder:
        return reader_of(config, None if inputs is None else inputs.source)

    def describe(self, config: Config, data: Prepared[LabelInputs, Part[Examples]]) -> Described:
        source, labels = data.inputs.source, data.inputs.labels
        told = f"classify: {some(labels)} from {source.size:,} {source.kind} tokens"
        return Described("labelled texts", told, len(labels), "tokens")
