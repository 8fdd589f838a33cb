"""The files of a run that its training writes and reads: kept weights, checkpoints and the plan."""

from contextlib import nullcontext
from pathlib import Path

from torch import nn

from foveal.store import checkpoint, durable
from foveal.store.metrics_log import LogPosition
from foveal.store.regular_files import read_regular
from foveal.store.run import RunFolder
from foveal.store.sealed import seal_tensors, unique_state_dict
from foveal.training import snapshot


class RunFiles:
    """Writes the weights and the checkpoints of a run's training `state`, and restores both."""

    def __init__(self, folder: RunFolder, model: nn.Module, state: snapshot.TrainingState):
        self.folder, self.model, self.state = folder, model, state
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
            place = snapshot.from_files(state, self.model, folder.fingerprint, newest)
            self._newest = newest.path
            if state.counters.step == state.plans.extended_at:
                state.counters.finish_reason = ""
            if state.batches and not state.counters.finish_reason:
                state.batches.go_to(state.position, place)
        else:
            for log in state.logs.values():
                log.truncate(LogPosition())
        weights = state.best or (self._last_weights() if newest else b"")
        if not weights or (folder.weights.is_file() and read_regular(folder.weights) == weights):
            return "", damaged
        durable.atomic_write(folder.weights, weights)
        return f"{folder.weights} is written again, from a checkpoint; ", damaged

    def save(self) -> Path:
        """Write a checkpoint of the current state, between two steps. Without best weights, the last weights
        are written, too."""
        folder, step = self.folder, self.state.counters.step
        if self.state.best is None:
            durable.atomic_write(folder.weights, self._last_weights())
        files = snapshot.to_files(self.state, self.model, folder.fingerprint)
        self._newest = checkpoint.save(folder.checkpoints, step, files, self._newest, folder.fingerprint)
        return self._newest

    def keep_best(self, loss: float) -> None:
        """Keep the model's current weights as the best. `loss` is their validation loss."""
        self.state.best = self._sealed_weights("best", loss)
        durable.atomic_write(self.folder.weights, self.state.best)

    def _last_weights(self) -> bytes:
        with self.state.average.applied() if self.state.average else nullcontext():
            return self._sealed_weights("last", None)

    def _sealed_weights(self, which: str, loss: float | None) -> bytes:
        facts = {
            "which": f"{which} average" if self.state.average else which,
            "step": self.state.counters.step,
            "loss": loss,
        }
        return seal_tensors(unique_state_dict(self.model), facts)
