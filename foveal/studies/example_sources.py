"""Batches of sources in float64, of which an encoder under test makes a memory."""

from typing import NamedTuple

import torch
from torch import Tensor

from foveal.models.encoder_registry import (
    ClipSizes,
    ImageSizes,
    SeriesSizes,
    SourceSizes,
    TokenSizes,
    WordSizes,
)

LENGTHS = [9, 4, 1, 7]
ROWS, LONGEST = len(LENGTHS), max(LENGTHS)
VOCABULARY, CHANNELS, SIDE = 11, 3, 32
FORMS, FORM_COUNTS, CHARACTERS = 2, (3, 2, 1), 4


class ExampleSource(NamedTuple):
    """A batch of sources."""

    sizes: SourceSizes
    """Those by which an encoder is made."""
    values: Tensor
    lengths: list[int] | None
    """None for images."""


def example_source(reads: str) -> ExampleSource:
    """Return a batch of one of the sources that encoders read."""
    if reads == "image":
        return example_images(CHANNELS, SIDE)
    if reads == "text":
        return ExampleSource(TokenSizes(VOCABULARY, LONGEST), _ids(VOCABULARY), LENGTHS)
    if reads == "words":
        known = 1 + len(FORM_COUNTS)
        sizes = WordSizes(FORMS, FORM_COUNTS, known, LONGEST)
        return ExampleSource(sizes, _ids(known, FORMS + CHARACTERS), LENGTHS)
    if reads == "clip":
        values = _numbers(ROWS, LONGEST, CHANNELS, SIDE, SIDE)
        return ExampleSource(ClipSizes(CHANNELS, SIDE, LONGEST), values, LENGTHS)
    return ExampleSource(SeriesSizes(CHANNELS, LONGEST), _numbers(ROWS, LONGEST, CHANNELS), LENGTHS)


def example_images(channels: int, size: int) -> ExampleSource:
    """Return a batch of images of `size` by `size` pixels."""
    return ExampleSource(ImageSizes(channels, size), _numbers(ROWS, channels, size, size), None)


def _ids(known: int, *shape: int) -> Tensor:
    return torch.randint(1, known, (ROWS, LONGEST, *shape), generator=torch.Generator().manual_seed(0))


def _numbers(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
