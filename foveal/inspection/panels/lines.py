"""Curves and points over common axes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Series:
    """Points that belong together. NaN has no point."""

    name: str
    x: Sequence[float | int]
    y: Sequence[float | int]
    style: Literal["line", "dots", "dotted", "faint", "ring", "points", "cloud"] = "line"
    color: int = 0
    """The number of its color; series of equal color belong together."""
    band: tuple[Sequence[float | int], Sequence[float | int]] | None = None
    """The lower and the upper limit of a band around the line."""
    labels: tuple[str, ...] = ()
    """A text beside each point, or none."""

    def __post_init__(self) -> None:
        parts = [self.y, *(self.band or ()), *([self.labels] if self.labels else [])]
        if any(len(part) != len(self.x) for part in parts):
            raise ValueError(f"{self.name}: {len(self.x)} values of x, but {[*map(len, parts)]} beside")

    def to_json(self) -> dict[str, Any]:
        """Return the points."""
        points = {"name": self.name, "x": [*self.x], "y": [*self.y]}
        band = {} if self.band is None else {"low": [*self.band[0]], "high": [*self.band[1]]}
        return points | band | ({"labels": [*self.labels]} if self.labels else {})


@dataclass(frozen=True)
class Lines:
    """Curves over a common axis."""

    title: str
    series: tuple[Series, ...]
    x_label: str
    y_label: str = ""
    log_x: bool = False
    log_y: bool = False
    limits: tuple[float, float] | None = None
    """The shown part of the y axis; all of it if not given."""
    equal: bool = False
    """Whether a unit is as long on both axes."""
    size: tuple[float, float] = (3.1, 3.0)
    """Inches of the figure."""
    legend: bool = True

    def sentence(self) -> str:
        """Return a description, for those who do not see the picture."""
        about = self.y_label or self.title
        names = dict.fromkeys(series.name for series in self.series if series.name not in ("", about))
        subject = " by ".join(filter(None, (about, self.x_label)))
        return ": ".join(filter(None, (subject, ", ".join(names))))

    def to_json(self) -> dict[str, Any]:
        """Return the points by the names of their series."""
        series = [series.to_json() for series in self.series]
        scales = {"log_x": self.log_x, "log_y": self.log_y}
        return {"x": self.x_label, "y": self.y_label or self.title, "series": series} | scales
