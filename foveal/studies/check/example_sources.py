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
SIZES: dict[str, SourceSizes] = {
    "image": ImageSizes(CHANNELS, SIDE),
    "text": TokenSizes(VOCABULARY, LONGEST),
    "words": WordSizes(FORMS, FORM_COUNTS, 1 + len(FORM_COUNTS), LONGEST),
    "clip": ClipSizes(CHANNELS, SIDE, LONGEST),
    "series": SeriesSizes(CHANNELS, LONGEST),
    "audio": SeriesSizes(CHANNELS, LONGEST),
}
"""The sizes of a batch of each source that encoders read."""


class ExampleSource(NamedTuple):
    """A batch of sources."""

    sizes: SourceSizes
    """Those by which an encoder is made."""
    values: Tensor
    lengths: list[int] | None
    """None for images."""


def example_source(reads: str) -> ExampleSource:
    """Return a batch of one of the sources that encoders read."""
    return source_of_sizes(SIZES[reads])


def source_of_sizes(sizes: SourceSizes) -> ExampleSource:
    """Return a batch of sources of some sizes, of up to 9 places."""
    if isinstance(sizes, ImageSizes):
        return ExampleSource(sizes, _numbers(ROWS, sizes.channels, sizes.size, sizes.size), None)
    if isinstance(sizes, TokenSizes):
        return ExampleSource(sizes, _ids(min(sizes.vocabulary, VOCABULARY)), LENGTHS)
    if isinstance(sizes, WordSizes):
        known = 1 + min(len(sizes.form_counts), len(FORM_COUNTS))
        return ExampleSource(sizes, _ids(known, sizes.forms + CHARACTERS), LENGTHS)
    if isinstance(sizes, ClipSizes):
        frames = _numbers(ROWS, LONGEST, sizes.channels, sizes.size, sizes.size)
        return ExampleSource(sizes, frames, LENGTHS)
    return ExampleSource(sizes, _numbers(ROWS, LONGEST, sizes.channels), LENGTHS)


def _ids(known: int, *shape: int) -> Tensor:
    return torch.randint(1, known, (ROWS, LONGEST, *shape), generator=torch.Generator().manual_seed(0))


def _numbers(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
