"""A tag for each word of a sentence."""

from typing import Any

from foveal.config import Config
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import Prepared
from foveal.data.core.split_data import Part
from foveal.data.text import tagging
from foveal.data.text.tagging import TagInputs
from foveal.encoders.text import TextEncoder
from foveal.tasks.base import Described
from foveal.tasks.examples import reader_of
from foveal.tasks.labeling import PlacesKind, some


class TagKind(PlacesKind):
    def __init__(self) -> None:
        super().__init__(tagging)

    def encoder(self, config: Config, inputs: TagInputs | None = None) -> TextEncoder:
        return reader_of(config, None if inputs is None else inputs.source)

    def describe(self, config: Config, data: Prepared[TagInputs, Part[Examples]]) -> Described:
        source, tags = data.inputs.source, data.inputs.labels
        told = f"tag: {some(tags)} for each word, from {source.size:,} {source.kind} tokens"
        return Described("tagged sentences", told, len(tags), "words")

    def amount(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['words']:,} words"
