"""The files of a run that its training writes and reads: kept weights, checkpoints and the plan."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from foveal.core.errors import RunFailed
from foveal.core.signals import SignalHandler
from foveal.core.state import State
from foveal.distributed.placement import Placement
from foveal.distributed.world import World
from foveal.store import checkpoint, durable
from foveal.store.background import Background
from foveal.store.metrics_log import LogPosition
from foveal.store.plan import Plans
from foveal.store.regular_files import read_regular
from foveal.store.run import RunFolder
from foveal.training import snapshot
from foveal.training.placed_weights import whole_weights
from foveal.training.state_copy import StateCopy, TensorFile, copy_of, copy_state


class RunFiles:
    """Writes the weights and the checkpoints of a run's training `state`, and restores both.

    All ranks call each method together, because they may share the weights. Files are written in a thread of
    their own, from copies, in the order in which they were asked for. A checkpoint is a draft until each rank
    has written its files, and the main rank gives it its name then.
    """

    def __init__(
        self,
        folder: RunFolder,
        model: nn.Module,
        state: snapshot.TrainingState,
        placement: Placement,
        world: World,
    ):
        self.folder, self.model, self.state = folder, model, state
        self.placement, self.world = placement, world
        self._newest: Path | None = None
        self._written: tuple[int, Path] | None = None
        self._background = Background()
        self._is_shared_draft = False
        """Whether several processes have a draft, to which the main rank has not yet given its name."""
        self._listing: checkpoint.Listing | None = None
        self._draft: checkpoint.Draft | None = None
        self._step = 0
        """The step of the draft."""

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

        The checkpoint before is finished first.

        Raises: RunFailed: a file could not be written.
        """
        self.finish()
        state = self.state
        fingerprint = self.folder.fingerprint
        copy = copy_state(state, self.model, self.placement, self.world, fingerprint, carries)
        last = self._last_weights(copy) if state.counters.best_step is None else None
        names = self.world.exchange(self._new_draft())[0]
        part, path = (self.folder.checkpoints / name for name in names)
        alone = self.world.processes == 1
        self._is_shared_draft, self._listing = not alone, None

        def write() -> None:
            if last is not None:
                durable.atomic_write(self.folder.weights, *last.sealed())
            for log in state.logs.values():
                log.sync()
            files = self._background.pieces(copy.files(state.best if self.world.is_main else None))
            self._listing = checkpoint.write_files(part, path, files)
            if alone:
                self._publish([self._listing])

        self._background.start(write)

    @property
    def listing(self) -> checkpoint.Listing | None:
        """The files of a draft that this process has written, once all are, and it writes nothing else."""
        return None if self._background.is_busy else self._listing

    def publish(self, listings: Sequence[checkpoint.Listing | None]) -> None:
        """Give a checkpoint its name, in the thread that writes, if each process has written its files.

        `listings` are those of all processes.
        """
        complete = [listing for listing in listings if listing is not None]
        if not self._is_shared_draft or len(complete) < len(listings):
            return
        self._is_shared_draft, self._listing = False, None
        if self.world.is_main:
            self._background.start(partial(self._publish, complete))

    def written(self) -> tuple[int, Path] | None:
        """Return the step and the path of a checkpoint that is complete since the last call.

        Raises: RunFailed: it could not be written.
        """
        self._background.poll()
        written, self._written = self._written, None
        return written

    def finish(self) -> None:
        """Wait until all is written, and a draft has its name.

        Raises: RunFailed: a file could not be written.
        """
        self._background.wait()
        if self._is_shared_draft:
            self.publish(self.world.exchange(self.listing))
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
                self._background.wait()
            if self._draft is not None:
                self._draft.discard()
            raise

    def keep_best(self, loss: float) -> None:
        """Keep the model's current weights as the best, in a copy. `loss` is their validation loss."""
        self._background.wait()
        if (weights := self._whole_weights("best", loss)) is not None:
            self._background.start(partial(self._write_best, weights))

    def write_plans(self, plans: Plans) -> None:
        """Write the plans durably."""
        self.folder.write_plans(plans)

    def _write_best(self, weights: TensorFile) -> None:
        self.state.best = weights.sealed()
        durable.atomic_write(self.folder.weights, *self.state.best)

    def _rewrite_weights(self, newest: checkpoint.Checkpoint | None) -> str:
        """Write the kept weights if they are not those of the checkpoint. Return in words what was
        written."""
        weights: Sequence[durable.Chunk] = self.state.best or []
        if newest and not self.state.best:
            with self._averaged():
                last = self._whole_weights("last", None)
            weights = last.sealed() if last else []
        return self._write_again(weights)

    def _write_again(self, weights: Sequence[durable.Chunk]) -> str:
        """Write the kept weights if they are others than those of the file. Return in words what was
        written."""
        path = self.folder.weights
        if not weights or (path.is_file() and read_regular(path) == b"".join(weights)):
            return ""
        durable.atomic_write(path, *weights)
        return f"{path} is written again, from a checkpoint; "

    def _last_weights(self, copy: StateCopy) -> TensorFile | None:
        """Return a copy of the current weights, or of their average; None if another process writes them."""
        weights = copy.tensors.get(f"{snapshot.WEIGHTS}.safetensors")
        if weights is not None and self.state.average is None and self.world.is_main:
            return TensorFile(weights.tensors, self._facts("last", None))
        with self._averaged():
            return self._whole_weights("last", None)

    def _averaged(self) -> AbstractContextManager[None]:
        return self.state.average.applied() if self.state.average else nullcontext()

    def _whole_weights(self, which: str, loss: float | None) -> TensorFile | None:
        """Return a copy of the model's weights on the main rank, and None on the others, which send their
        parts."""
        tensors = dict[str, Tensor]()
        for name, whole in whole_weights(self.model, self.placement):
            if self.world.is_main:
                tensors[name] = copy_of(whole)
        return TensorFile(tensors, self._facts(which, loss)) if self.world.is_main else None

    def _facts(self, which: str, loss: float | None) -> dict[str, Any]:
        return {
            "which": f"{which} average" if self.state.average else which,
            "step": self.state.counters.step,
            "loss": loss,
        }

    def _new_draft(self) -> tuple[str, str]:
        """Make the folder of a new checkpoint. Return its name, and that which it will have."""
        step, run = self.state.counters.step, self.folder.fingerprint
        self._draft, self._step = checkpoint.Draft(self.folder.checkpoints, step, run), step
        return self._draft.part.name, self._draft.path.name

    def _publish(self, listings: Sequence[checkpoint.Listing]) -> None:
        assert self._draft is not None
        draft, self._draft = self._draft, None
        self._newest = draft.publish(listings, self._newest)
        self._written = self._step, self._newest
