"""Interfaces between the trainer and everything else. The trainer knows no task, no model and no screen."""

from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.result import ObjectiveOutput
from foveal.core.state import State


@runtime_checkable
class Batch(Protocol):
    """A batch as the trainer sees it."""

    @property
    def stream_starts(self) -> Bool[Tensor, " B"] | None:
        """Return True for rows that begin a new stream. None means that every row begins, so no state is
        carried."""

    @property
    def tokens(self) -> int:
        """The number of tokens trained on, for speed and for budgets."""


@runtime_checkable
class Batches(Protocol):
    """Micro-batches as a pure function of (seed, epoch, index).

    With `training.grad_accumulation = K`, micro-batch `index` belongs to slot `index % K` of a step: its rows
    continue those of `index - K`. If streams restart at an epoch, `stream_starts` marks their rows.
    """

    @property
    def per_epoch(self) -> int: ...

    def batch(self, epoch: int, index: int) -> Any:
        """Return a `Batch`."""


@runtime_checkable
class PlacedBatches(Batches, Protocol):
    """Batches that are read in order, so that a checkpoint stores the place in them."""

    def place(self, position: int) -> State:
        """Return what finds the place before micro-batch `position` again."""

    def go_to(self, position: int, place: State) -> None:
        """Go on before micro-batch `position`, whose `place` is from a checkpoint; None if it has none."""


class BatchesExhausted(UserError):
    """Batches that can be read only once are at their end. The state before the step is saved."""


@runtime_checkable
class Objective(Protocol):
    """Computes the terms of the loss, and the next carry (the state of the rows), from a batch and
    a carry."""

    def __call__(self, batch: Any, carry: State) -> tuple[ObjectiveOutput, State]: ...

    def weights(self, batch: Any) -> dict[str, float]:
        """Return the weight of each term, from the batch alone."""

    def start(self, batch: Any) -> State:
        """Return the carry of rows that begin, with the gradient of learned initial states. None means no
        carry."""

    def preview(self, step: int) -> str | None:
        """Return a short sample that the current model generates.

        Raises: RunFailed: the model can't generate a sample.
        """
