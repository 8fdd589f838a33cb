"""A training of a study in a process of its own, which is watched and may be stopped."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Literal

from foveal.core.signals import SignalHandler
from foveal.plugins.loading import loaded_plugins
from foveal.plugins.options import PLUGIN
from foveal.store.manifest import MANIFEST_FILE
from foveal.store.progress import is_at_its_end
from foveal.store.run import CURVES_FILE, WEIGHTS_FILE
from foveal.store.run_list import is_locked
from foveal.studies.trials.records import LogFollower, Record
from foveal.ui.error_line import ERROR_PREFIX

POLL_SECONDS = 0.1
USER_ERROR_CODE = 2
STOPPED_CODE = 128 + signal.SIGTERM
WatchRecord = Callable[[Record], bool]
"""Gets each new record of a training's log, and returns whether the training is to be stopped."""


@dataclass(frozen=True)
class TrialEnd:
    """How a training ended."""

    state: Literal["finished", "stopped", "failed"]
    """Whether the budget was spent, `watch` stopped the training, or the training failed."""
    error: str = ""
    """The line in which a failed training says why."""


def train_in_process(
    path: Path, arguments: Sequence[str], signals: SignalHandler, watch: WatchRecord
) -> TrialEnd:
    """Train the run `path` with `foveal train ARGUMENTS`, or resume the run if there is one.

    A signal is passed on: the training saves, and the study goes on with the run later. A process that an
    earlier, killed study has left is waited for. Of a run that is at its end, `watch` gets all records.

    Raises: Interrupted: a signal came.
    """
    has_begun = (path / MANIFEST_FILE).exists()
    if has_begun:
        _wait_for_other_process(path, signals)
    log = LogFollower(path / "metrics.jsonl")
    # The curves come last: without them the process ended before its scores.
    is_at_end = is_at_its_end(path / "checkpoints", path / WEIGHTS_FILE) and (path / CURVES_FILE).exists()
    if has_begun and is_at_end:
        for record in log.new_records():
            watch(record)
        return TrialEnd("finished")
    rest = ["resume", str(path)] if has_begun else ["train", *arguments, "--run", str(path)]
    code, is_stopped, error = _run_process([*rest, *options_of_plugins(), "-q"], log, signals, watch)
    for record in [] if is_stopped else log.new_records():
        watch(record)
    if code == 0:
        return TrialEnd("finished")
    if is_stopped and code in (STOPPED_CODE, -signal.SIGTERM):
        return TrialEnd("stopped")
    if code == USER_ERROR_CODE and not has_begun and (path / MANIFEST_FILE).exists():
        # A process that a killed study has left has made the run meanwhile.
        return train_in_process(path, arguments, signals, watch)
    return TrialEnd("failed", error or _describe_end(code))


def _run_process(
    arguments: Sequence[str], log: LogFollower, signals: SignalHandler, watch: WatchRecord
) -> tuple[int, bool, str]:
    """Run `foveal ARGUMENTS`, pass a signal on, and show each record to `watch`. Return the exit code,
    whether the process was asked to stop, and its error."""
    command, is_stopped = [sys.executable, "-m", "foveal", *arguments], False
    with (
        signals.deferred(),
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process,
    ):
        errors = _Errors(process.stderr)
        try:
            while process.poll() is None:
                if signals.pending is not None and not is_stopped:
                    is_stopped = True
                    process.send_signal(signals.pending)
                for record in [] if is_stopped else log.new_records():
                    if watch(record):
                        is_stopped = True
                        process.terminate()
                        break
                time.sleep(POLL_SECONDS)
        except BaseException:  # a second signal
            process.kill()
            raise
        error = errors.last()
    return process.returncode, is_stopped, error


def options_of_plugins() -> list[str]:
    """Return the options with which another process has the plugins that the user named here."""
    files = [str(plugin.path) for plugin in loaded_plugins() if plugin.origin == "file"]
    return [part for file in files for part in (PLUGIN, file)]


def _describe_end(code: int) -> str:
    """Return in words how a process ended that says nothing itself."""
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with exit code {code}"


def _wait_for_other_process(path: Path, signals: SignalHandler) -> None:
    while is_locked(path):
        signals.poll()
        time.sleep(POLL_SECONDS)


class _Errors:
    """Reads what a process writes to standard error, and keeps the last error."""

    def __init__(self, stream: Iterable[str] | None):
        assert stream is not None
        self._last = ""
        self._reader = Thread(target=self._read, args=(stream,), daemon=True)
        self._reader.start()

    def _read(self, stream: Iterable[str]) -> None:
        for line in stream:
            if line.startswith(ERROR_PREFIX):
                self._last = line.removeprefix(ERROR_PREFIX).rstrip("\n")

    def last(self) -> str:
        """Return the last error, at the end of the process."""
        self._reader.join()
        return self._last
