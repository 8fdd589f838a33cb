"""Ranks that a function of the Python interface starts: processes whose output it prints."""

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from pathlib import Path
from threading import Thread

from foveal.core.errors import RunFailed, UserError
from foveal.core.signals import Interrupted, SignalHandler, TrainingInterrupted
from foveal.ui.console import warn, write_exact
from foveal.ui.error_line import ERROR_PREFIX

POLL_SECONDS = 0.1
USER_ERROR_CODE = 2
OF_A_RANK = re.compile(r"rank \d+: ")


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


def run_ranks(
    command: Sequence[str], run: Path, signals: SignalHandler, environment: Mapping[str, str] | None = None
) -> None:
    """Run a command that starts ranks, which train a run. Print what they say, and pass signals on to them.

    The output goes through this process, because a notebook shows nothing else. If this process ends, so does
    the standard input of the command.

    Raises: UserError: the command says that the user can mend its error.
    Raises: RunFailed: it failed, or a rank was killed.
    Raises: Interrupted: a signal came before there was a run.
    Raises: TrainingInterrupted: a signal came.
    """
    with (
        signals.deferred(),
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            env=environment,
        ) as process,
    ):
        messages = _Messages()
        readers = [_start_reader(process.stderr, messages.add), _start_reader(process.stdout, write_exact)]
        is_told = False
        try:
            while process.poll() is None:
                if signals.pending is not None and not is_told:
                    is_told = True
                    process.send_signal(signals.pending)
                time.sleep(POLL_SECONDS)
        except BaseException:  # a second signal
            process.kill()
            raise
        for reader in readers:
            reader.join()
        if process.returncode == 0:
            messages.print_last()
            return
        reason = messages.last or f"the processes ended with exit code {process.returncode}"
        number = process.returncode - 128
        if number in (signal.SIGINT, signal.SIGTERM):
            stopped = TrainingInterrupted if run.exists() else Interrupted
            raise stopped(number, reason.removeprefix(f"stopped by {signal.Signals(number).name}"))
        raise (UserError if process.returncode == USER_ERROR_CODE else RunFailed)(reason)


class _Messages:
    """Prints lines, but for the last error, which says why the ranks end."""

    def __init__(self) -> None:
        self.last = ""

    def add(self, line: str) -> None:
        """Print a line, or keep it if it is an error. Of equal errors of several ranks one is kept."""
        text = line.rstrip("\n")
        if not text.startswith(ERROR_PREFIX):
            warn(text)
            return
        error = text.removeprefix(ERROR_PREFIX)
        if OF_A_RANK.sub("", error, 1) != OF_A_RANK.sub("", self.last, 1):
            self.print_last()
            self.last = error

    def print_last(self) -> None:
        """Print the error that is kept, if there is one."""
        if self.last:
            warn(self.last)


def _start_reader(stream: Iterable[str] | None, take: Callable[[str], None]) -> Thread:
    """Start a thread that passes the lines of a stream on. It prints in the words of this thread."""
    assert stream is not None
    thread = Thread(target=copy_context().run, args=(_read, stream, take), daemon=True)
    thread.start()
    return thread


def _read(stream: Iterable[str], take: Callable[[str], None]) -> None:
    for line in stream:
        take(line)
