"""The files of a run that its training writes and reads: kept weights, checkpoints and the plan."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from foveal.core.state import State
from foveal.distributed.placement import Placement
from foveal.store import checkpoint, durable
from foveal.store.metrics_log import LogPosition
from foveal.store.plan import Plans
from foveal.store.regular_files import read_regular
from foveal.store.run import RunFolder
from foveal.store.sealed import seal_tensors
from foveal.training import snapshot
from foveal.training.placed_weights import whole_state_dict


class RunFiles:
    """Writes the weights and the checkpoints of a run's training `state`, and restores both.

    All ranks call each method together, because they may share the weights.
    """

    def __init__(
        self, folder: RunFolder, model: nn.Module, state: snapshot.TrainingState, placement: Placement
    ):
        self.folder, self.model, self.state, self.placement = folder, model, state, placement
        self._newest: Path | None = None

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

    def save(self, carries: list[State]) -> Path:
        """Write a checkpoint of the current state, between two steps. Without best weights, the last weights
        are written, too. `carries` are those of all rows of the micro-batches."""
        if self.state.best is None:
            self._write_weights(self._last_weights())
        tensors = snapshot.whole_tensors(self.state, self.model, self.placement)
        return self._write_checkpoint(tensors, carries)

    def keep_best(self, loss: float) -> None:
        """Keep the model's current weights as the best. `loss` is their validation loss."""
        self.state.best = self._sealed_weights("best", loss)
        self._write_weights(self.state.best)

    def write_plans(self, plans: Plans) -> None:
        """Write the plans durably."""
        self.folder.write_plans(plans)

    def _rewrite_weights(self, newest: checkpoint.Checkpoint | None) -> str:
        """Write the kept weights if they are not those of the checkpoint. Return in words what was
        written."""
        path, weights = self.folder.weights, self._kept_weights(newest)
        if not weights or (path.is_file() and read_regular(path) == weights):
            return ""
        durable.atomic_write(path, weights)
        return f"{path} is written again, from a checkpoint; "

    def _kept_weights(self, newest: checkpoint.Checkpoint | None) -> bytes:
        return self.state.best or (self._last_weights() if newest else b"")

    def _last_weights(self) -> bytes:
        with self.state.average.applied() if self.state.average else nullcontext():
            return self._sealed_weights("last", None)

    def _sealed_weights(self, which: str, loss: float | None) -> bytes:
        facts = {
            "which": f"{which} average" if self.state.average else which,
            "step": self.state.counters.step,
            "loss": loss,
        }
        return self._seal(whole_state_dict(self.model, self.placement), facts)

    def _seal(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> bytes:
        return seal_tensors(tensors, facts)

    def _write_weights(self, weights: bytes) -> None:
        durable.atomic_write(self.folder.weights, weights)

    def _write_checkpoint(self, tensors: snapshot.StateTensors, carries: list[State]) -> Path:
        folder, step = self.folder, self.state.counters.step
        files = snapshot.to_files(self.state, tensors, folder.fingerprint, carries)
        self._newest = checkpoint.save(folder.checkpoints, step, files, self._newest, folder.fingerprint)
        return self._newest
