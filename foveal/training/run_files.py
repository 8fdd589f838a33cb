"""The files of a run that its training writes and reads: kept weights, checkpoints and the plan."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from foveal.core.errors import RunFailed
from foveal.core.signals import SignalHandler
from foveal.core.state import State
from foveal.distributed.placement import Placement
from foveal.store import checkpoint, durable
from foveal.store.background import Background
from foveal.store.metrics_log import LogPosition
from foveal.store.plan import Plans
from foveal.store.regular_files import read_regular
from foveal.store.run import RunFolder
from foveal.store.sealed import sealed_chunks
from foveal.training import snapshot
from foveal.training.placed_weights import whole_state_dict
from foveal.training.snapshot import copied


@dataclass(frozen=True)
class Weights:
    """Weights, and what the header of their file says about them."""

    tensors: dict[str, Tensor]
    facts: dict[str, Any]

    def sealed(self) -> list[durable.Chunk]:
        """Return the content of their file."""
        return sealed_chunks(self.tensors, self.facts)


class RunFiles:
    """Writes the weights and the checkpoints of a run's training `state`, and restores both.

    All ranks call each method together, because they may share the weights. Files are written in a thread of
    their own, from copies, in the order in which they were asked for.
    """

    def __init__(
        self, folder: RunFolder, model: nn.Module, state: snapshot.TrainingState, placement: Placement
    ):
        self.folder, self.model, self.state, self.placement = folder, model, state, placement
        self._newest: Path | None = None
        self._written: tuple[int, Path] | None = None
        self._background = Background()

    def restore(self) -> tuple[str, list[str]]:
        """Restore the state from the newest checkpoint. Without a checkpoint, the logs are emptied.

        Return what was written again, in words, and a line about each damaged checkpoint.

        Raises: UserError: a checkpoint or a log can't be used.
        """
        state, folder = self.state, self.folder
        state.plans = folder.read_plans()
        newest, damaged = checkpoint.load_latest(folder.checkpoints)
        if newest:
            place = snapshot.from_files(state, self.model, self.placement, folder.fingerprint, newest)
            self._newest = newest.path
            if state.counters.step == state.plans.extended_at:
                state.counters.finish_reason = ""
            if state.batches and not state.counters.finish_reason:
                state.batches.go_to(state.position, place)
        else:
            for log in state.logs.values():
                log.truncate(LogPosition())
        return self._rewrite_weights(newest), damaged

    def begin_save(self, carries: list[State]) -> None:
        """Copy the current state, between two steps, and begin to write it as a checkpoint. Without best
        weights, the last weights are written, too. `carries` are those of all rows of the micro-batches.

        Only one file or checkpoint is written at a time, so this waits for the one before.

        Raises: RunFailed: the one before could not be written.
        """
        self._background.wait()
        state, step = self.state, self.state.counters.step
        copy = snapshot.take_snapshot(state, self.model, self.placement, self.folder.fingerprint, carries)
        last = self._last_weights(copy) if state.counters.best_step is None else None
        self._write_checkpoint(step, copy, last)

    def written(self) -> tuple[int, Path] | None:
        """Return the step and the path of a checkpoint that is complete since the last call.

        Raises: RunFailed: it could not be written.
        """
        self._background.poll()
        written, self._written = self._written, None
        return written

    def finish(self) -> None:
        """Wait until all is written.

        Raises: RunFailed: a file could not be written.
        """
        self._background.wait()

    @contextmanager
    def finished_at_end(self, signals: SignalHandler) -> Iterator[None]:
        """Return a context at whose end nothing is being written. After a second signal, what is half
        written is given up."""
        try:
            yield
        except BaseException:
            if signals.urgent:
                self._background.abandon()
            with suppress(RunFailed):  # the error that ends the training came first
                self.finish()
            raise
        self.finish()

    def keep_best(self, loss: float) -> None:
        """Keep the model's current weights as the best, in a copy. `loss` is their validation loss."""
        self._background.wait()
        self._write_best(
            Weights(copied(whole_state_dict(self.model, self.placement)), self._facts("best", loss))
        )

    def write_plans(self, plans: Plans) -> None:
        """Write the plans durably."""
        self.folder.write_plans(plans)

    def _rewrite_weights(self, newest: checkpoint.Checkpoint | None) -> str:
        """Write the kept weights if they are not those of the checkpoint. Return in words what was
        written."""
        path, weights = self.folder.weights, self._kept_weights(newest)
        if not weights or (path.is_file() and read_regular(path) == b"".join(weights)):
            return ""
        durable.atomic_write(path, *weights)
        return f"{path} is written again, from a checkpoint; "

    def _kept_weights(self, newest: checkpoint.Checkpoint | None) -> Sequence[durable.Chunk]:
        if self.state.best or not newest:
            return self.state.best or []
        with self._averaged():
            weights = Weights(whole_state_dict(self.model, self.placement), self._facts("last", None))
        return weights.sealed()

    def _last_weights(self, copy: snapshot.Snapshot) -> Weights:
        """Return a copy of the current weights, or of their average."""
        facts = self._facts("last", None)
        if self.state.average is None:
            return Weights(copy.tensors[snapshot.WEIGHTS_FILE], facts)
        with self._averaged():
            return Weights(copied(whole_state_dict(self.model, self.placement)), facts)

    def _averaged(self) -> AbstractContextManager[None]:
        return self.state.average.applied() if self.state.average else nullcontext()

    def _facts(self, which: str, loss: float | None) -> dict[str, Any]:
        return {
            "which": f"{which} average" if self.state.average else which,
            "step": self.state.counters.step,
            "loss": loss,
        }

    def _write_best(self, weights: Weights) -> None:
        def write() -> None:
            self.state.best = weights.sealed()
            durable.atomic_write(self.folder.weights, *self.state.best)

        self._background.start(write)

    def _write_checkpoint(self, step: int, copy: snapshot.Snapshot, last: Weights | None) -> None:
        folder = self.folder

        def write() -> None:
            if last is not None:
                durable.atomic_write(folder.weights, *last.sealed())
            for log in self.state.logs.values():
                log.sync()
            files = self._background.pieces(copy.files(self.state.best))
            self._newest = checkpoint.save(folder.checkpoints, step, files, self._newest, folder.fingerprint)
            self._written = step, self._newest

        self._background.start(write)
