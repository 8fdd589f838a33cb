"""The ranks that share the experts of a layer (expert parallelism), and what they send each other."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from foveal.distributed.tensor_group import SplitAxes, TensorGroup


class ExpertGroup(TensorGroup):
    """A single process, which has all experts."""

    def exchange_counts(self, counts: Int[Tensor, " E"]) -> Int[Tensor, "R E_own"]:
        """Return how many vectors each rank sends to each of the own experts, from how many this rank sends
        to each of all experts."""
        return counts[None]

    def exchange(self, x: Float[Tensor, "N D"], sent: list[int], received: list[int]) -> Float[Tensor, "M D"]:
        """Return the vectors that the ranks send to this one, one rank after another; this rank sends
        `sent[r]` vectors to rank r, in order."""
        return x


ALL_EXPERTS = ExpertGroup()


@runtime_checkable
class ExpertModule(Protocol):
    """A module whose experts ranks can share."""

    def spread_among(self, group: ExpertGroup) -> SplitAxes:
        """Compute with the own experts from now on. Return the axis of each weight that has an entry for each
        expert, by its name. The caller cuts the weights.

        Raises: ValueError: the ranks of the group can't share the experts.
        """
