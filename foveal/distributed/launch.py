"""Starts ranks on this machine, by torch's elastic agent, and ends them together."""

import logging
import os
import sys
import tempfile
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals

from foveal.core.errors import RunFailed, UserError
from foveal.core.log import Log
from foveal.core.rank import LAUNCHER_VARIABLE, STOP_VARIABLE
from foveal.core.signals import Interrupted
from foveal.distributed.heartbeat import SILENT_RANK_CODE
from foveal.distributed.world import LOST_RANK_CODE

SHUTDOWN_SECONDS = 300
"""The longest time for the ranks to save a checkpoint after a signal."""
PACKAGE = __name__.partition(".")[0]
NOTE_VARIABLE = "FOVEAL_RUN_NOTE"
"""The variable with the path of the file in which the main rank notes its run for the launcher."""

USER_ERROR_CODE = 2
"""The exit code of a rank that has said what the user can mend."""
STOPPED = {128 + SIGINT, 128 + SIGTERM}
"""The exit codes of ranks that a signal stopped."""


class RankLeft(Exception):
    """A signal ended a rank; or a rank gave no sign of life, which another rank has said (then without a
    text)."""


@dataclass(frozen=True)
class Launcher:
    """Starts ranks, and starts them again."""

    ranks: int
    max_restarts: int
    resume: Callable[[str], list[str]]
    """Returns the arguments with which a run goes on."""
    log: Log
    advice: Callable[[str], str]
    """Returns how to go on with a run, for the line about a killed rank."""
    otherwise: str = " before there was a run"
    """The end of that line, if there is no run to go on with."""
    module: str = PACKAGE
    """The module that a rank runs."""

    def run(self, arguments: list[str], run: str = "") -> None:
        """Run `python -m MODULE ARGUMENTS` in several processes on this machine. If a rank is killed or
        freezes, start all again.

        A process has its share of the machine's cores as threads, unless OMP_NUM_THREADS says how many. `run`
        is the run, if it is known before the ranks know it.

        Raises: UserError: the number of ranks is below 1, or that of restarts below 0.
        Raises: RunFailed: a rank was killed.
        Raises: SystemExit: a rank failed, and has said why.
        Raises: Interrupted: a signal came, to this process or to a rank.
        """
        if self.ranks < 1:
            raise UserError(f"--ranks {self.ranks}: expected a number from 1 on")
        if self.max_restarts < 0:
            raise UserError(f"--max-restarts {self.max_restarts}: expected a number from 0 on")
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, cores // self.ranks)))
        _silence_torch()
        with tempfile.TemporaryDirectory() as folder:
            note = Path(folder, "run")
            note.write_text(run)
            os.environ[NOTE_VARIABLE] = str(note)
            os.environ[LAUNCHER_VARIABLE], os.environ[STOP_VARIABLE] = (
                str(os.getpid()),
                str(note.with_name("stop")),
            )
            for restart in range(self.max_restarts + 1):
                try:
                    return _run_once(self.ranks, self.module, arguments)
                except RankLeft as left:
                    run, reason = note.read_text(), str(left)
                    if not run or restart == self.max_restarts:
                        raise self._failure(reason, run) from None
                    before = f"{reason}; " if reason else ""
                    self.log(f"{before}{run} goes on (restart {restart + 1} of {self.max_restarts})")
                    arguments = self.resume(run)

    def _failure(self, reason: str, run: str) -> BaseException:
        """Return the error that ends the command."""
        if not reason:
            return SystemExit(1)
        stopped = f"{reason}, so all {self.ranks} ranks are stopped"
        if not run:
            return RunFailed(f"{stopped}{self.otherwise}")
        return RunFailed(f"{stopped}; {self.advice(run)}")


def is_launched() -> bool:
    """Return whether a launcher has started this process as one of its ranks."""
    return NOTE_VARIABLE in os.environ


def note_run(path: str) -> None:
    """Note the run of this command for its launcher, if it has one."""
    if note := os.environ.get(NOTE_VARIABLE):
        Path(note).write_text(path)


def _run_once(ranks: int, module: str, arguments: list[str]) -> None:
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=ranks,
        run_id=uuid.uuid4().hex,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=0,  # an attempt of its own for each: the agent's hangs on the keys of the last one
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    try:
        elastic_launch(config, sys.executable)("-m", module, *arguments)
    except ChildFailedError as failed:
        codes = {rank: failure.exitcode for rank, failure in sorted(failed.failures.items())}
        raise _reason(codes) from None
    except SignalException as stop:
        raise _stopped(stop.sigval) from None


def _reason(codes: Mapping[int, int]) -> BaseException:
    """Return the error that the exit codes of ranks mean. One rank failed first, and others since."""
    if USER_ERROR_CODE in codes.values():  # the agent kills a rank that still waits for the one that failed
        return SystemExit(USER_ERROR_CODE)
    if SILENT_RANK_CODE in codes.values():
        return RankLeft()
    for rank, code in codes.items():
        if code < 0 and -code not in (SIGINT, SIGTERM):  # the agent ends the others by SIGTERM
            return RankLeft(f"rank {rank} was ended by {Signals(-code).name}")
    own = [128 - code if code == -SIGINT else code for code in codes.values()]
    own = [code for code in own if code > 0 and code != LOST_RANK_CODE]
    failures = [code for code in own if code not in STOPPED]  # a failed rank has the others stopped
    if own and not failures:
        return _stopped(min(own) - 128)  # the others are stopped by SIGTERM
    return SystemExit(next(iter(failures), 1))


def _stopped(number: int) -> Interrupted:
    """Return the error of a signal, with what the main rank says it left."""
    left = Path(os.environ[STOP_VARIABLE])
    return Interrupted(number, left.read_text()) if left.exists() else Interrupted(number)


def _silence_torch() -> None:
    """Keep log lines of the agent and of C++ off the screen: a failed rank says in a line what happened."""
    logging.disable()
    os.environ["TORCH_CPP_LOG_LEVEL"] = "FATAL"
