"""The ranks that split a layer (tensor parallelism), and the sums that join its parts.

A layer that is split by its outputs reads `group.enter(x)`; one that is split by its inputs returns a part of
a sum, and `group.leave(part)` is the whole. These are f and g of Shoeybi et al. 2019, figure 3.

Between the layers of a stack is its *stream* (B, T, D). Each rank has all of its positions, or a part of them
(`distributed.sequence_group`).
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, TypeVar, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

SplitAxes = dict[str, int]
"""The axis along which the ranks split each weight, by its name in the module. Other weights stay whole."""
Compute = TypeVar("Compute", bound=Callable[..., object])


class TensorGroup:
    """A single process, which has each layer whole."""

    def __init__(self, rank: int = 0, size: int = 1):
        self.rank, self.size = rank, size

    def enter(self, x: Tensor) -> Tensor:
        """Return x. Its gradient is the sum of the gradients of all parts."""
        return x

    def enter_whole(self, x: Tensor) -> Tensor:
        """Return x, of which each rank has all positions, whatever it has of the stream. Its gradient is the
        sum of the gradients of all parts."""
        return self.enter(x)

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

    def along_sequence(self) -> "TensorGroup":
        """Return a group of the same ranks, each of which has a part of the positions of a stream."""
        return self

    def cut(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B t D"]:
        """Return the own positions of x, with which the stream begins. The gradient is that of all."""
        return x

    def gather(self, x: Float[Tensor, "B t D"]) -> Float[Tensor, "B T D"]:
        """Return all positions of the stream, for what each rank computes whole."""
        return x

    def length(self, x: Float[Tensor, "B t D"]) -> int:
        """Return the number of all positions of the stream, from the own ones."""
        return x.shape[1]

    def positions(self, x: Float[Tensor, "B t D"]) -> slice:
        """Return the own positions of the stream."""
        return slice(0, x.shape[1])

    def own_lengths(self, lengths: Int[Tensor, " B"] | None) -> Int[Tensor, " B"] | None:
        """Return how many of the own positions of the stream are no padding."""
        return lengths

    def keeping_own(self) -> AbstractContextManager[object]:
        """Return a context in which layers keep the own positions alone of what entered, for the backward
        pass."""
        return nullcontext()

    def with_length(self, compute: Compute) -> Compute:
        """Return a computation with the stream, which may be done again when the group has another one."""
        return compute


ONE_PART = TensorGroup()


@runtime_checkable
class SplitModule(Protocol):
    """A module that ranks can split."""

    def split_among(self, group: TensorGroup) -> SplitAxes:
        """Compute with the own parts of the weights from now on. Return the axis of each split weight, by
        its name. The caller cuts the weights.

        Raises: ValueError: the ranks of the group can't split the module.
        """


@runtime_checkable
class StreamModule(Protocol):
    """A module that computes with the stream, be it whole or cut."""

    stream: TensorGroup


@runtime_checkable
class StreamOwner(Protocol):
    """A module that begins the stream of its stack by `stack.stream.cut`, and ends it by
    `stack.stream.gather`."""

    stack: nn.Module
    in_stream: tuple[str, ...]
    """The names of the modules that compute with the stream beside the stack."""


def axes_below(name: str, axes: SplitAxes) -> SplitAxes:
    """Return the axes of a submodule's weights by their names in the module."""
    return {f"{name}.{weight}": axis for weight, axis in axes.items()}
