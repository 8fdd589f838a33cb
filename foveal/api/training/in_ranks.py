"""A run that several processes of this machine train, started from Python."""

import signal
import subprocess
import sys
import time
from threading import Thread

from foveal.core.errors import RunFailed, UserError
from foveal.core.signals import SignalHandler, TrainingInterrupted
from foveal.store.run import RunFolder
from foveal.ui.console import log

POLL_SECONDS = 0.1
COMMAND = "foveal: "


def check_ranks(ranks: int | None, has_callbacks: bool) -> None:
    """Check a number of ranks.

    Raises: UserError: it is below 1, or there are callbacks, which the ranks could not call.
    """
    if ranks is None:
        return
    if ranks < 1:
        raise UserError(f"ranks={ranks}: expected a number from 1 on")
    if has_callbacks:
        raise UserError("callbacks= are called in this process, and ranks= trains in others: leave out one")


def train_in_ranks(run: RunFolder, ranks: int, quiet: bool, signals: SignalHandler) -> None:
    """Train a run in processes that `foveal resume RUN --ranks N` starts, and print what they say.

    Raises: RunFailed: the training failed, or a rank was killed.
    Raises: TrainingInterrupted: a signal came.
    """
    command = [sys.executable, "-m", "foveal", "resume", str(run.path), "--ranks", str(ranks)]
    quietly = ["-q"] if quiet else []
    with (
        signals.deferred(),
        subprocess.Popen(
            [*command, *quietly], stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process,
    ):
        lines = _Lines(process)
        try:
            while process.poll() is None:
                if signals.pending is not None and not lines.stopping:
                    lines.stopping = True
                    process.send_signal(signals.pending)
                time.sleep(POLL_SECONDS)
        except BaseException:  # a second signal
            process.kill()
            raise
        lines.join()
        if process.returncode == 0:
            log(lines.last)
            return
        reason = lines.last.removeprefix(COMMAND)
        number = process.returncode - 128
        if number in (signal.SIGINT, signal.SIGTERM):
            name = signal.Signals(number).name
            raise TrainingInterrupted(number, reason.removeprefix(f"stopped by {name}"))
        raise RunFailed(reason)


class _Lines(Thread):
    """Prints the lines of a process, but for the last, which may say why it ends."""

    def __init__(self, process: "subprocess.Popen[str]"):
        super().__init__(daemon=True)
        self.process, self.last, self.stopping = process, "", False
        self.start()

    def run(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if self.last:
                log(self.last)
            self.last = line.rstrip("\n")
