"""What the trainer asks of everything else: it knows no task, no model and no screen."""

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Bool
from torch import Tensor

from foveal.core.result import ObjectiveOutput
from foveal.core.state import State
from foveal.training.plan import Plan


@runtime_checkable
class Batch(Protocol):
    @property
    def stream_starts(self) -> Bool[Tensor, " B"] | None:
        """True for rows that begin a new stream; None if every row begins, so that nothing is carried."""

    @property
    def tokens(self) -> int:
        """Tokens trained on, for speed and for budgets."""


@runtime_checkable
class Batches(Protocol):
    """Micro-batches as a pure function of (seed, epoch, index).

    With `training.grad_accumulation = K`, micro-batch `index` belongs to slot `index % K` of a step: its rows
    continue those of `index - K`. Where streams begin anew at an epoch, `stream_starts` says so.
    """

    @property
    def per_epoch(self) -> int: ...

    def batch(self, epoch: int, index: int) -> Any:
        """A `Batch`."""


@runtime_checkable
class Objective(Protocol):
    def __call__(self, batch: Any, carry: State) -> tuple[ObjectiveOutput, State]: ...

    def weights(self, batch: Any) -> dict[str, float]:
        """The weight of each term, from the batch alone."""

    def start(self, batch: Any) -> State:
        """The carry of rows that begin, with the gradient of learned starts; None if nothing is carried."""

    def preview(self, step: int) -> str | None:
        """A short sample of what the model makes now. Raises RunFailed if it can make none."""


@runtime_checkable
class Reporter(Protocol):
    """Who watches: the trainer itself never prints. Every call gets plain data."""

    def started(self, step: int, plan: Plan | None, damaged: list[str]) -> None:
        """Training begins at `step`; `damaged` says which checkpoints could not be used, and why."""

    def planned(self, plan: Plan) -> None:
        """A budget of time has become a number of steps."""

    def step(self, record: dict[str, Any]) -> None:
        """One update; `record` is the line in metrics.jsonl."""

    def step_skipped(self, record: dict[str, Any]) -> None:
        """An update that was not applied; `record["culprit"]` says where the first bad number appeared."""

    def evaluated(self, record: dict[str, Any], best_step: int | None) -> None:
        """The means over the validation batches; the best so far were those of `best_step`."""

    def sample(self, step: int, text: str) -> None: ...

    def saved(self, step: int, path: Path) -> None: ...

    def finished(self, step: int, reason: str, best_step: int | None, best_loss: float | None) -> None:
        """`reason` is `budget` or `patience`."""
