"""Commands in several processes, the ranks: `--ranks N` and `--max-restarts N`."""

import shlex
import sys
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path

from foveal.commands.parallel import FLAGS, OPTIONS, ParallelOptions
from foveal.core.errors import UserError
from foveal.core.rank import rank, world_size
from foveal.core.signals import SignalHandler
from foveal.distributed.launch import Launcher, is_launched
from foveal.distributed.world import ONE_PROCESS, joined_world
from foveal.training.agreement import Agreement
from foveal.ui.console import log, warn
from foveal.ui.error_line import print_error

START_AGAIN = "start the command again"
KEPT_FLAGS = {"-q", "--quiet", "--json", "--trust-plugin", "--debug", *FLAGS}
KEPT_OPTIONS = {"--plugin", "--device", "--log", *OPTIONS}
"""Options of a command that hold for the run that it made, too."""


def launch_ranks(options: ParallelOptions, run: Path | None = None) -> bool:
    """Run this command in several processes, if the user asks for them. Return whether it was run so.

    `run` is the run that the command opens, if it makes none.

    Raises: UserError: a number is too small, or there are no ranks of ours to restart.
    Raises: RunFailed: a rank was killed.
    Raises: SystemExit: a rank failed, and has said why, or a signal came.
    """
    if is_launched():
        return False
    if world_size() > 1:
        if options.max_restarts:
            raise UserError("--max-restarts: torchrun starts its ranks again: torchrun --max-restarts")
        return False
    if options.ranks is None:
        if options.max_restarts:
            raise UserError("--max-restarts: there are no ranks to start again without --ranks N")
        return False
    arguments = sys.argv[1:]
    kept = options_in(arguments, KEPT_FLAGS, KEPT_OPTIONS)
    placement = options_in(arguments, FLAGS, OPTIONS)
    again = ["--ranks", str(options.ranks), *placement]
    launcher = Launcher(
        options.ranks,
        options.max_restarts,
        lambda path: ["resume", path, *kept],
        warn,
        lambda path: f"go on with {shlex.join(['foveal', 'resume', path, *again])}",
    )
    launcher.run(arguments, "" if run is None else str(run))
    return True


def launch_to_use(ranks: int | None, alone: str) -> bool:
    """Run this command, which uses a run, in several processes if the user asks for them. Return whether this
    process has nothing left to do.

    `alone` is why a single process does the work, whatever the ranks; empty if they share it.

    Raises: UserError: the number of ranks is below 1.
    Raises: RunFailed: a rank was killed.
    Raises: SystemExit: a rank failed, and has said why.
    Raises: Interrupted: a signal came.
    """
    if alone:
        if ranks is not None:
            log(f"--ranks {ranks}: {alone}, by one process")
        return rank() > 0
    if ranks is None or is_launched() or world_size() > 1:
        return False
    Launcher(ranks, 0, lambda path: [], warn, lambda path: START_AGAIN, f"; {START_AGAIN}").run(sys.argv[1:])
    return True


@contextmanager
def working_together(alone: str) -> Iterator[Agreement]:
    """Return a context in which this process shares its work with the other ranks, if there are any.

    If it fails on some ranks, the first says why, and the others end.

    Raises: RankLost: another rank has failed or ended.
    """
    with SignalHandler() as signals:
        if alone:
            yield Agreement(ONE_PROCESS, signals)
            return
        with joined_world(print_error, START_AGAIN) as world:
            together = Agreement(world, signals)
            with together.ending_together():
                yield together


def options_in(arguments: Sequence[str], flags: Set[str], options: Set[str]) -> list[str]:
    """Return those flags, and those options with their values, that are among the arguments of a command."""
    kept: list[str] = []
    for place, argument in enumerate(arguments):
        if argument in flags or argument.partition("=")[0] in options - {argument}:
            kept.append(argument)
        elif argument in options:
            kept += arguments[place : place + 2]
    return kept
