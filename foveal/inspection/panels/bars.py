"""Bars side by side, for each position of an axis."""

from dataclasses import dataclass
from typing import Any

from foveal.core.terminal_text import counted
from foveal.inspection.panels.named_array import NamedArray


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
        (count, positions), (series, axis) = self.array.values.shape, self.array.axes
        by = f" by {axis.name}" if axis.name else ""
        each = f" for each of {', '.join(series.labels) or f'{count:,} series'}" if count > 1 else ""
        return ", ".join(filter(None, (self.title, f"{counted(positions, 'bar')}{by}{each}")))

    def to_json(self) -> dict[str, Any]:
        """Return the numbers with their names."""
        return {"array": self.array.to_json()}
