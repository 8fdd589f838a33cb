"""Commands in several processes: `--ranks N` and `--max-restarts N`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from foveal.core.errors import UserError
from foveal.core.rank import world_size
from foveal.distributed.launch import Launcher, is_launched
from foveal.ui.console import warn

KEPT_FLAGS = {"-q", "--quiet", "--json", "--trust-plugin", "--debug"}
KEPT_OPTIONS = {"--plugin", "--device", "--log"}
"""Options of a command that hold for the run that it made, too."""


def launch_ranks(ranks: int | None, max_restarts: int, run: Path | None = None) -> bool:
    """Run this command in several processes, if the user asks for them. Return whether it was run so.

    `run` is the run that the command opens, if it makes none.

    Raises: UserError: a number is too small, or there are no ranks of ours to restart.
    Raises: RunFailed: a rank was killed.
    Raises: SystemExit: a rank failed, and has said why, or a signal came.
    """
    if is_launched():
        return False
    if world_size() > 1:
        if max_restarts:
            raise UserError("--max-restarts: torchrun starts its ranks again: torchrun --max-restarts")
        return False
    if ranks is None:
        if max_restarts:
            raise UserError("--max-restarts: there are no ranks to start again without --ranks N")
        return False
    arguments = sys.argv[1:]
    launcher = Launcher(ranks, max_restarts, lambda path: ["resume", path, *kept_options(arguments)], warn)
    launcher.run(arguments, "" if run is None else str(run))
    return True


def kept_options(arguments: Sequence[str]) -> list[str]:
    """Return the options of a command that `foveal resume` takes, too."""
    kept: list[str] = []
    for place, argument in enumerate(arguments):
        if argument in KEPT_FLAGS or argument.partition("=")[0] in KEPT_OPTIONS - {argument}:
            kept.append(argument)
        elif argument in KEPT_OPTIONS:
            kept += arguments[place : place + 2]
    return kept
