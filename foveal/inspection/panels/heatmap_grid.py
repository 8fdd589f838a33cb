"""Maps of numbers in rows and columns, on one scale: all heads of all layers."""

from dataclasses import dataclass
from typing import Any

from foveal.inspection.panels.named_array import NamedArray, is_diverging, joined_names


@dataclass(frozen=True)
class HeatmapGrid:
    """Small maps side by side, from `low` to `high` all of them, so that equal colors are equal numbers.

    The colors diverge from 0 where `low` is `-high`; NaN is hatched.
    """

    title: str
    array: NamedArray
    """Rows of maps, columns of maps, and the rows and columns of each."""
    low: float
    high: float

    def __post_init__(self) -> None:
        if self.array.values.ndim != 4:
            raise ValueError(f"{self.title}: a grid of maps has four dimensions")

    @property
    def diverging(self) -> bool:
        """Return whether 0 is the middle of the colors."""
        return is_diverging(self.low, self.high)

    def sentence(self) -> str:
        """Return a description, for those who do not see the picture."""
        (maps_down, maps_across, rows, columns), axes = self.array.values.shape, self.array.axes
        maps = f"{maps_down:,} x {maps_across:,} maps{joined_names(' by ', axes[:2], ' and ')}"
        return f"{maps}, each {rows:,} x {columns:,}{joined_names(' of ', axes[2:])}"

    def to_json(self) -> dict[str, Any]:
        """Return the numbers with their names."""
        return {"array": self.array.to_json(), "low": self.low, "high": self.high}
