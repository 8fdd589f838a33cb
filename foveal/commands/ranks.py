"""Commands in several processes: `--ranks N` and `--max-restarts N`."""

import sys
from collections.abc import Sequence

from foveal.core.errors import UserError
from foveal.core.rank import world_size
from foveal.distributed.launch import Launcher
from foveal.ui.console import warn

KEPT_FLAGS = {"-q", "--quiet", "--json", "--trust-plugin", "--debug"}
KEPT_OPTIONS = {"--plugin", "--device", "--log"}
"""Options of a command that hold for the run that it made, too."""


def launch_ranks(ranks: int | None, max_restarts: int) -> bool:
    """Run this command in several processes, if the user asks for them. Return whether it was run so.

    Raises: UserError: a number is too small, or there are no ranks to restart.
    Raises: RunFailed: a rank was killed.
    Raises: SystemExit: a rank failed, and has said why, or a signal came.
    """
    if world_size() > 1:
        return False
    if ranks is None:
        if max_restarts:
            raise UserError("--max-restarts: there are no ranks to start again without --ranks N")
        return False
    arguments = sys.argv[1:]
    Launcher(ranks, max_restarts, lambda run: ["resume", run, *kept_options(arguments)], warn).run(arguments)
    return True


def kept_options(arguments: Sequence[str]) -> list[str]:
    """Return the options of a command with which the run that it made goes on."""
    kept: list[str] = []
    for place, argument in enumerate(arguments):
        if argument in KEPT_FLAGS or argument.partition("=")[0] in KEPT_OPTIONS - {argument}:
            kept.append(argument)
        elif argument in KEPT_OPTIONS:
            kept += arguments[place : place + 2]
    return kept
