"""Which numbers of the weights a process holds, and what it computes with: all of them, unless ranks share
them."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.state import State
from foveal.core.stored_tensor import Box, StoredTensor

MicroBatch = Callable[[], Tensor]
"""Computes the loss of a micro-batch."""
Seed = tuple[object, ...]
"""What noise is a function of."""


class Placement:
    """Each process holds all weights.

    A weight and its *own part* are then the same tensor. Where ranks share the weights, gradients and the
    states of optimizers have the shape of the own part.
    """

    is_whole = True
    """Whether a process can compute with the model without the other ranks."""

    part = 0
    """The number of the own parts among different ones. The first process writes what is whole on each."""
    writes = True
    """Whether a checkpoint takes the own parts from this process, since others may have equal ones."""

    def own_weight(self, name: str, weight: Tensor) -> Tensor:
        """Return the own part of a weight, or a buffer of the model, in the same storage."""
        return weight

    def take_gradient(self, weight: nn.Parameter) -> Tensor | None:
        """Return the gradient of the own part of a weight, and leave none."""
        gradient, weight.grad = weight.grad, None
        return gradient

    def counts(self, own: Tensor) -> bool:
        """Return whether sums over all weights of all ranks count the own part of a weight here."""
        return True

    def whole_shape(self, own: Tensor) -> torch.Size:
        """Return the shape of the whole weight of an own part."""
        return own.shape

    def whole(self, value: Tensor, own: Tensor) -> Tensor:
        """Return a value for all numbers of a weight, from that for its `own` part. It may have more axes
        before those of the weight. All ranks call this together."""
        return value

    def own(self, value: Tensor, own: Tensor) -> Tensor:
        """Return the value for the `own` part of a weight, from that for all of its numbers."""
        return value

    def box(self, value: Tensor, own: Tensor) -> Box | None:
        """Return where the value for the `own` part of a weight lies in that for all of its numbers; None if
        it has all."""
        return None

    def read(self, stored: StoredTensor, own: Tensor) -> Tensor:
        """Return the stored value for the `own` part of a weight, and read no other."""
        return stored.whole()

    def gather(self, numbers: Tensor) -> Tensor:
        """Return the numbers of all ranks among which the weights are shared (R, ...)."""
        return numbers[None]

    def run(self, micro_batches: Sequence[MicroBatch], seeds: Sequence[Seed]) -> None:
        """Add up the gradients of the losses of micro-batches, whose noise is a function of `seeds`."""
        for compute in micro_batches:
            compute().backward()  # type: ignore[no-untyped-call]

    def carries(self, carries: list[State]) -> list[State]:
        """Return the new carries of the micro-batches that `run` computed, from those that this process
        knows. All ranks call this together."""
        return carries

    def own_states(self, carry: State) -> State:
        """Return the part of a carry that this process computes with."""
        return carry

    def computing(self, objective: Any) -> Any:
        """Return the objective as it computes with the weights. All ranks call its methods together."""
        return objective


WHOLE_WEIGHTS = Placement()
