"""The ranks that split a layer (tensor parallelism), and the sums that join its parts.

A layer that is split by its outputs reads `group.enter(x)`; one that is split by its inputs returns a part of
a sum, and `group.leave(part)` is the whole. These are f and g of Shoeybi et al. 2019, figure 3.
"""

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

SplitAxes = dict[str, int]
"""The axis along which the ranks split each weight, by its name in the module. Other weights stay whole."""


class TensorGroup:
    """A single process, which has each layer whole."""

    def __init__(self, rank: int = 0, size: int = 1):
        self.rank, self.size = rank, size

    def enter(self, x: Tensor) -> Tensor:
        """Return x. Its gradient is the sum of the gradients of all parts."""
        return x

    def leave(self, part: Tensor) -> Tensor:
        """Return the sum of the parts. Each has the gradient of the sum."""
        return part

    def join(self, part: Float[Tensor, "*B V"], length: int) -> Float[Tensor, "*B W"]:
        """Return the parts of an axis of the given length, one after another."""
        return part

    def maximum(self, part: Tensor) -> Tensor:
        """Return the largest values of the parts, without gradients."""
        return part

    def rows(self, length: int) -> slice:
        """Return the own part of `length` rows. Parts are of one size, but for the last ones."""
        return self.rows_of(self.rank, length)

    def rows_of(self, rank: int, length: int) -> slice:
        """Return the part of a rank."""
        each = -(-length // self.size)
        return slice(min(length, each * rank), min(length, each * (rank + 1)))

    def check_rows(self, length: int, what: str) -> None:
        """Check that each part of `length` rows has some.

        Raises: ValueError: a part would be empty.
        """
        if -(-length // self.size) * (self.size - 1) >= length:
            raise ValueError(f"{length} {what} can't be split among {self.size} ranks")


ONE_PART = TensorGroup()


@runtime_checkable
class SplitModule(Protocol):
    """A module that ranks can split."""

    def split_among(self, group: TensorGroup) -> SplitAxes:
        """Compute with the own parts of the weights from now on. Return the axis of each split weight, by
        its name. The caller cuts the weights.

        Raises: ValueError: the ranks of the group can't split the module.
        """


def axes_below(name: str, axes: SplitAxes) -> SplitAxes:
    """Return the axes of a submodule's weights by their names in the module."""
    return {f"{name}.{weight}": axis for weight, axis in axes.items()}
