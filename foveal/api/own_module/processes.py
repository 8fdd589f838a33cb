"""Processes of this machine that train a user's module together, started from Python (`ranks=`)."""

import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cloudpickle
import torch

from foveal.api.own_module.launcher import MODULE
from foveal.api.ranks import check_ranks, run_ranks
from foveal.core.errors import UserError
from foveal.core.rank import world_size
from foveal.core.signals import SignalHandler
from foveal.core.terminal_text import counted
from foveal.ui.console import log

MAKE_IT = "give a function that makes it"
MENDS = {
    **{"module": MAKE_IT, "train": MAKE_IT, "valid": MAKE_IT},
    **dict.fromkeys(("objective", "weight"), "make that inside of the function"),
}
"""The arguments that may hold what no other process can get, and how to mend that."""


@dataclass(frozen=True)
class Processes:
    """The number of processes, and the arguments of the Trainer in each."""

    ranks: int
    arguments: Mapping[str, Any]

    def train(self, run: Path, signals: SignalHandler) -> None:
        """Train a run to its end, and print what the processes say.

        Raises: UserError: an argument can't be given to other processes, or the training can't begin.
        Raises: RunFailed: the training failed, or a rank was killed.
        Raises: Interrupted: a signal came.
        """
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "trainer.pt")
            self._write({**self.arguments, "run": run}, file)
            log(f"starting {counted(self.ranks, 'rank')}")
            command = [sys.executable, "-m", MODULE, str(file), str(self.ranks)]
            run_ranks(command, run, signals, _environment())

    def _write(self, arguments: Mapping[str, Any], file: Path) -> None:
        """Write the arguments. What the script itself defines is written by value.

        Raises: UserError: an argument can't be written.
        """
        try:
            _save(arguments, file)
        except Exception as error:  # whatever the code of a user raises
            for name, mend in MENDS.items():
                if reason := _why_not(arguments[name]):
                    raise UserError(f"{name} can't be given to other processes ({reason}): {mend}") from None
            raise UserError(
                f"{file.parent.parent}: what the other processes get can't be written there ({error}): free "
                "space, or name another folder in TMPDIR"
            ) from error


def new_processes(ranks: int | None, has_callbacks: bool, arguments: Mapping[str, Any]) -> Processes | None:
    """Return the processes that a script asks for; None if it trains in its own.

    Raises: UserError: they can't be started here.
    """
    check_ranks(ranks, has_callbacks)
    if ranks is None:
        return None
    if world_size() > 1:
        raise UserError("ranks= starts processes, and torchrun has started this one already: leave out ranks")
    return Processes(ranks, arguments)


def _save(value: Any, file: str | Path) -> None:
    torch.save(value, file, pickle_module=cloudpickle, pickle_protocol=cloudpickle.DEFAULT_PROTOCOL)


def _why_not(value: Any) -> str:
    """Return why a value can't be written; empty if it can."""
    try:
        _save(value, os.devnull)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _environment() -> dict[str, str]:
    """Return the environment of a process that imports what this one does, and prints at once."""
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    return os.environ | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1"}
