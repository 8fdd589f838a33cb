"""When a training writes checkpoints, which are complete some time later, and tells its callbacks of them."""

import time

from foveal.core.callbacks import Callback
from foveal.training.callbacks import CallbackList
from foveal.training.run_files import RunFiles
from foveal.training.slots import Slots
from foveal.training.snapshot import TrainingState
from foveal.training.time_left import TimeLeft


class Saving:
    """The checkpoints of a training, one at least every `interval` seconds.

    All ranks call its methods together.
    """

    def __init__(
        self,
        files: RunFiles,
        state: TrainingState,
        slots: Slots,
        callbacks: CallbackList,
        time_left: TimeLeft,
        interval: float,
    ):
        self.files, self.interval = files, interval
        self.last_step = 0
        """The step of the last checkpoint."""
        self._state, self._slots, self._callbacks, self._time_left = state, slots, callbacks, time_left
        self._last_time = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Return whether the last checkpoint is older than the interval, by the clock of this rank."""
        return time.monotonic() - self._last_time >= self.interval

    def save(self) -> None:
        """Write a checkpoint of the current state, and wait until it is complete.

        Raises: RunFailed: a file can't be written.
        """
        self.begin()
        self.files.finish()
        self.report()

    def save_silently(self) -> None:
        """Write a checkpoint of which the callbacks are not told, because one of them has failed."""
        self.files.finish()
        self.files.begin_save(self._slots.whole_carries(self._state.carries))
        self.files.finish()

    def begin(self) -> None:
        """Copy the current state, after the checkpoint before is complete. A checkpoint of it is written
        while the training goes on.

        Raises: RunFailed: the checkpoint before could not be written.
        """
        started = time.monotonic()
        self.files.finish()
        self.report()
        self.files.begin_save(self._slots.whole_carries(self._state.carries))
        self._last_time, self.last_step = time.monotonic(), self._state.counters.step
        self._time_left.saved(self._last_time - started, self.interval)

    def report(self) -> None:
        """Tell the callbacks of a checkpoint that is complete.

        Raises: RunFailed: a file could not be written.
        """
        if written := self.files.written():
            self._callbacks.emit(Callback.on_checkpoint, *written)
