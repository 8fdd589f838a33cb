"""The parts of a view's result. A panel holds named numbers; renderers know panels, and no views."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import UInt8
from numpy.typing import NDArray

Role = Literal["plain", "muted", "correct", "incorrect", "highlight"]
"""What a color means. Each renderer has its own colors."""


def answer_role(answer: str, reference: str | None) -> Role:
    """Return what the color of an answer means: it is muted where the reference is unknown."""
    if reference is None:
        return "muted"
    return "correct" if answer == reference else "incorrect"


@dataclass(frozen=True)
class Axis:
    """A dimension of an array. Without labels, its positions are numbered from 0."""

    name: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class NamedArray:
    """An array with a name for each dimension, and labels for its positions."""

    values: NDArray[Any]
    axes: tuple[Axis, ...]
    unit: str = ""

    def __post_init__(self) -> None:
        names = [axis.name for axis in self.axes]
        if self.values.ndim != len(names):
            raise ValueError(f"{self.values.ndim} dimensions, but {len(names)} names: {names}")
        for axis, size in zip(self.axes, self.values.shape, strict=True):
            if axis.labels and len(axis.labels) != size:
                raise ValueError(f"{axis.name}: {size} positions, but {len(axis.labels)} labels")

    def to_json(self) -> dict[str, Any]:
        """Return names, labels, unit and values."""
        labels = {axis.name: [*axis.labels] for axis in self.axes if axis.labels}
        dims = [axis.name for axis in self.axes]
        return {"dims": dims, "labels": labels, "unit": self.unit, "values": self.values.tolist()}


@dataclass(frozen=True)
class Heatmap:
    """A map of numbers from `low` to `high`, with a text in each cell or in none."""

    title: str
    array: NamedArray
    """Rows and columns."""
    low: float
    high: float
    texts: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        rows, columns = self.array.values.shape
        if self.texts and {(len(self.texts), len(row)) for row in self.texts} != {(rows, columns)}:
            raise ValueError(f"{self.title}: a text for each of {rows} x {columns} cells is needed")

    def sentence(self) -> str:
        """Return a description, for those who do not see the picture."""
        (rows, columns), (down, across) = self.array.values.shape, self.array.axes
        unit = f", {self.array.unit}" if self.array.unit else ""
        return f"{rows:,} x {columns:,} map of {down.name} by {across.name}{unit}"

    def to_json(self) -> dict[str, Any]:
        """Return the numbers with their names."""
        return {"array": self.array.to_json(), "low": self.low, "high": self.high}


@dataclass(frozen=True)
class Series:
    """Points that belong together. NaN has no point."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: Literal["line", "dots", "dotted", "faint"] = "line"
    color: int = 0
    """The number of its color; series of equal color belong together."""

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"{self.name}: {len(self.x)} values of x, but {len(self.y)} of y")


@dataclass(frozen=True)
class Note:
    """A text at a point."""

    x: float
    y: float
    text: str
    color: int = 0


@dataclass(frozen=True)
class Lines:
    """Curves over a common axis."""

    title: str
    series: tuple[Series, ...]
    x_label: str
    y_label: str = ""
    log_y: bool = False
    limits: tuple[float, float] | None = None
    """The shown part of the y axis; all of it if not given."""
    notes: tuple[Note, ...] = ()
    size: tuple[float, float] = (3.1, 3.0)
    """Inches of the figure."""
    legend: bool = True

    def sentence(self) -> str:
        """Return a description, for those who do not see the picture."""
        names = ", ".join(series.name for series in self.series)
        return f"{self.y_label or self.title} by {self.x_label}: {names}"

    def to_json(self) -> dict[str, Any]:
        """Return the points by the names of their series."""
        series = [{"name": one.name, "x": [*one.x], "y": [*one.y]} for one in self.series]
        return {"x": self.x_label, "y": self.y_label or self.title, "series": series}


@dataclass(frozen=True)
class Histogram:
    """The counts of one variable."""

    name: str
    counts: tuple[int, ...]
    cut: int | None = None
    """The number of a bin that is so tall that a picture cuts it off."""
    note: str = ""


@dataclass(frozen=True)
class Histograms:
    """Histograms with the same bins, side by side."""

    title: str
    edges: NDArray[np.float64]
    """The limits of the bins, one more than bins."""
    histograms: tuple[Histogram, ...]
    color: int = 0

    def __post_init__(self) -> None:
        for one in self.histograms:
            if len(one.counts) != len(self.edges) - 1:
                raise ValueError(f"{one.name}: {len(one.counts)} counts, but {len(self.edges)} edges")

    def sentence(self) -> str:
        """Return a description, for those who do not see the picture."""
        low, high = self.edges[[0, -1]]
        return f"histograms from {low:.3g} to {high:.3g}: {', '.join(one.name for one in self.histograms)}"

    def to_json(self) -> dict[str, Any]:
        """Return the edges, and the counts by name."""
        counts = [{"name": one.name, "counts": [*one.counts]} for one in self.histograms]
        return {"edges": self.edges.tolist(), "histograms": counts}


@dataclass(frozen=True)
class Bars:
    """Values side by side, for each position of an axis."""

    title: str
    array: NamedArray
    """Series and positions."""
    high: float | None = None
    """The end of the y axis; the largest value if not given."""

    def __post_init__(self) -> None:
        if self.array.values.ndim != 2:
            raise ValueError(f"{self.title}: bars have two dimensions: series and positions")

    def sentence(self) -> str:
        """Return a description, for those who do not see the picture."""
        (count, positions), (_, axis) = self.array.values.shape, self.array.axes
        names = f": {', '.join(self.array.axes[0].labels)}" if count > 1 else ""
        return f"{self.title} for {positions:,} of {axis.name}{names}"

    def to_json(self) -> dict[str, Any]:
        """Return the numbers with their names."""
        return {"array": self.array.to_json()}


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
    return {"shape": [*tile.pixels.shape], "captions": _texts(tile.captions), "marks": marks}


@dataclass(frozen=True)
class Table:
    """Rows of texts, with the names of their columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"{self.title}: each row has {len(self.columns)} columns")

    def sentence(self) -> str:
        """Return a description, for those who do not see the picture."""
        return f"table of {len(self.rows):,} rows: {', '.join(self.columns)}"

    def to_json(self) -> dict[str, Any]:
        """Return the texts."""
        return {"columns": [*self.columns], "rows": [[*row] for row in self.rows]}


Panel = Heatmap | Lines | Histograms | Bars | Images | Table
