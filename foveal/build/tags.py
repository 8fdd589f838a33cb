"""A tag for each word of a sentence."""

from typing import Any

from foveal.build.choices import PlacesKind, some
from foveal.build.examples import reader_of
from foveal.build.kind import Described
from foveal.config import Config
from foveal.data import tagged
from foveal.data.examples import Examples
from foveal.data.part import Part
from foveal.data.prepared import Prepared
from foveal.data.tagged import TagInputs
from foveal.encoders.text import TextEncoder


class TagKind(PlacesKind):
    def __init__(self) -> None:
        super().__init__(tagged)

    def encoder(self, config: Config, inputs: TagInputs | None = None) -> TextEncoder:
        return reader_of(config, None if inputs is None else inputs.source)

    def describe(self, config: Config, data: Prepared[TagInputs, Part[Examples]]) -> Described:
        source, tags = data.inputs.source, data.inputs.labels
        told = f"tag: {some(tags)} for each word, from {source.size:,} {source.kind} tokens"
        return Described("tagged sentences", told, len(tags), "words")

    def amount(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,} of {facts['words']:,} words"
