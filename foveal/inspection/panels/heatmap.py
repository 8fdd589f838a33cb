"""A map of numbers: rows and columns of colored cells."""

from dataclasses import dataclass
from typing import Any

from foveal.inspection.panels.named_array import NamedArray, is_diverging, joined_names


@dataclass(frozen=True)
class Heatmap:
    """A map of numbers from `low` to `high`, with a text in each cell or in none.

    The colors diverge from 0 where `low` is `-high`; NaN is hatched.
    """

    title: str
    array: NamedArray
    """Rows and columns."""
    low: float
    high: float
    texts: tuple[tuple[str, ...], ...] = ()
    marks: tuple[tuple[int, int], ...] = ()
    """Rows and columns of cells with a frame."""

    def __post_init__(self) -> None:
        rows, columns = self.array.values.shape
        if self.texts and {(len(self.texts), len(row)) for row in self.texts} != {(rows, columns)}:
            raise ValueError(f"{self.title}: a text for each of {rows} x {columns} cells is needed")

    @property
    def diverging(self) -> bool:
        """Return whether 0 is the middle of the colors."""
        return is_diverging(self.low, self.high)

    def sentence(self) -> str:
        """Return a description, for those who do not see the picture."""
        rows, columns = self.array.values.shape
        unit = f", {self.array.unit}" if self.array.unit else ""
        return f"{rows:,} x {columns:,} map{joined_names(' of ', self.array.axes)}{unit}"

    def to_json(self) -> dict[str, Any]:
        """Return the numbers with their names."""
        cells: dict[str, Any] = {"texts": [[*row] for row in self.texts]} if self.texts else {}
        if self.marks:
            cells["marks"] = [[*mark] for mark in self.marks]
        return {"array": self.array.to_json(), "low": self.low, "high": self.high} | cells
