"""Histograms with the same bins, side by side."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveal.core.terminal_text import number_text


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
    x_label: str = ""
    """The variable with its unit."""
    y_label: str = ""
    """What is counted."""
    log_x: bool = False

    def __post_init__(self) -> None:
        for one in self.histograms:
            if len(one.counts) != len(self.edges) - 1:
                raise ValueError(f"{one.name}: {len(one.counts)} counts, but {len(self.edges)} edges")

    def sentence(self) -> str:
        """Return a description, for those who do not see the picture."""
        kind = "histogram" if len(self.histograms) == 1 else "histograms"
        of = f" of {self.x_label}" if self.x_label else ""
        low, high = map(number_text, self.edges[[0, -1]].tolist())
        names = ", ".join(one.name for one in self.histograms if one.name)
        return f"{kind}{of} from {low} to {high}{f': {names}' if names else ''}"

    def to_json(self) -> dict[str, Any]:
        """Return the edges, and the counts by name."""
        counts = [{"name": one.name, "counts": [*one.counts]} for one in self.histograms]
        return {"edges": self.edges.tolist(), "histograms": counts}
