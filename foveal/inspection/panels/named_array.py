"""Numbers with a name for each dimension, and labels for its positions."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray


def is_diverging(low: float, high: float) -> bool:
    """Return whether colors from `low` to `high` diverge from 0: the limits lie as far below as above."""
    return low == -high and high > 0


@dataclass(frozen=True)
class Axis:
    """A dimension of an array. Without labels, its positions are numbered from 0."""

    name: str
    labels: tuple[str, ...] = ()


def joined_names(start: str, axes: Iterable[Axis], join: str = " by ") -> str:
    """Return the names of axes after a start; nothing if no axis has a name."""
    names = join.join(axis.name for axis in axes if axis.name)
    return f"{start}{names}" if names else ""


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
