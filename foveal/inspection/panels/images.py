"""Rows of images, with captions below them and marks over them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float, UInt8
from numpy.typing import NDArray

Role = Literal["plain", "muted", "correct", "incorrect", "highlight"]
"""What a color means. Each renderer has its own colors."""


def answer_role(answer: str, reference: str | None) -> Role:
    """Return what the color of an answer means: it is muted where the reference is unknown."""
    if reference is None:
        return "muted"
    return "correct" if answer == reference else "incorrect"


@dataclass(frozen=True)
class Caption:
    """A line of text below an image."""

    text: str
    role: Role = "plain"


@dataclass(frozen=True)
class Mark:
    """A line over an image, through points (down, across) in pixels."""

    points: NDArray[np.float64]
    role: Role = "highlight"
    dotted: bool = False
    closed: bool = False
    """Whether the last point is joined to the first: the frame of a region."""
    end: Literal["", "dot", "cross", "star", "arrow"] = ""
    numbered: bool = False


@dataclass(frozen=True)
class Tile:
    """An image with what stands below it and over it."""

    pixels: UInt8[np.ndarray, "H W C"]
    captions: tuple[Caption, ...] = ()
    marks: tuple[Mark, ...] = ()
    heat: Float[np.ndarray, "h w"] | None = None
    """Numbers from 0 to 1 that are drawn over the image in cells of any size; the squares stay squares."""


@dataclass(frozen=True)
class ImageRow:
    """Images side by side. The captions stand below all of them."""

    tiles: tuple[Tile | None, ...]
    name: str = ""
    captions: tuple[Caption, ...] = ()


@dataclass(frozen=True)
class Images:
    """Rows of images. None among the tiles leaves a place empty."""

    title: str
    rows: tuple[ImageRow, ...]
    tile_size: float = 1.1
    """Inches of the longer side of an image."""
    gap: float = 0.06
    """Inches between images."""

    def tiles(self) -> list[Tile]:
        """Return all images."""
        return [tile for row in self.rows for tile in row.tiles if tile is not None]

    def sentence(self) -> str:
        """Return a description, for those who do not see the picture."""
        count = len(self.tiles())
        return f"{count:,} {'image' if count == 1 else 'images'}{f': {self.title}' if self.title else ''}"

    def to_json(self) -> dict[str, Any]:
        """Return the shapes, captions and marks; pixels are in pictures only."""
        rows = [
            {"name": row.name, "captions": _texts(row.captions), "tiles": [*map(_tile_json, row.tiles)]}
            for row in self.rows
        ]
        return {"rows": rows}


def _texts(captions: Sequence[Caption]) -> list[str]:
    return [caption.text for caption in captions]


def _tile_json(tile: Tile | None) -> dict[str, Any] | None:
    if tile is None:
        return None
    marks = [mark.points.tolist() for mark in tile.marks]
    heat = {} if tile.heat is None else {"heat": tile.heat.tolist()}
    return {"shape": [*tile.pixels.shape], "captions": _texts(tile.captions), "marks": marks} | heat
