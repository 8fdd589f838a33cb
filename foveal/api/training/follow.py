"""The ranks beside the main rank: they open the run that the main rank made or opened, and train it
together."""

from contextlib import suppress

import torch

from foveal import __version__
from foveal.api.training.parts import make_objective, open_parts
from foveal.core.errors import UserError
from foveal.core.signals import SignalHandler
from foveal.distributed.world import World
from foveal.store.run import RunFolder
from foveal.training.trainer import FinishedError, Trainer


def meet(world: World, run: RunFolder | None) -> str:
    """Return the path of the main rank's `run`. All ranks call this before the training.

    Raises: UserError: this rank has another version of Foveal or torch than the main rank.
    """
    versions = f"Foveal {__version__} with torch {torch.__version__}"
    path, of_main = world.exchange((run and str(run.path.absolute()), versions))[0]
    if versions != of_main:
        raise UserError(
            f"this process has {versions}, and rank 0 has {of_main}: install the same on all machines"
        )
    return str(path)


def follow(world: World, signals: SignalHandler) -> None:
    """Train the run of the main rank until it is finished or stopped.

    Raises: UserError: this rank does not see the run, or sees other data.
    """
    parts = open_parts(meet(world, None), None)
    trainer = Trainer(
        parts.run, parts.task.model, make_objective(parts), parts.batches, parts.valid, world=world
    )
    with suppress(FinishedError):  # the main rank says so
        trainer.run(signals)
