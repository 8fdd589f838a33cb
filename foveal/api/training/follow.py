"""The ranks beside the main rank: they open the run that the main rank made or opened, and train it
together."""

import shutil
from contextlib import suppress
from pathlib import Path

import torch

from foveal import __version__
from foveal.api.training.parts import TrainingParts, make_objective, open_parts
from foveal.api.training.report import test_together, trained_model
from foveal.config import TrainingConfig
from foveal.core.errors import TrainingDiverged, UserError
from foveal.core.signals import Interrupted, SignalHandler
from foveal.core.terminal_text import counted
from foveal.distributed.launch import note_run
from foveal.distributed.restarts import note_for_restart
from foveal.distributed.world import World, lost_rank
from foveal.store.run import RunFolder
from foveal.tasks.trained_on import DataChangedError
from foveal.training.agreement import Agreement, FailedElsewhere
from foveal.training.trainer import FinishedError, Trainer


def check_world(config: TrainingConfig, world: World) -> None:
    """Check that the ranks can share the slots of a batch.

    Raises: UserError: they can't.
    """
    slots = config.slots
    if slots % world.size:
        parts = world.processes // world.size
        *others, last = [str(parts * size) for size in range(1, slots + 1) if slots % size == 0]
        sizes = f"{', '.join(others)} or {last}" if others else last
        raise UserError(
            f"--ranks {world.processes}: the {counted(slots, 'slot')} of a batch are shared by {sizes} "
            "ranks; choose one of these"
        )
    world.check_micro_batches(slots // world.size * config.grad_accumulation)


def check_versions(world: World) -> None:
    """Check that all ranks have one version of Foveal and of torch. All ranks call this first.

    Raises: UserError: this rank is the first with another version than the main rank.
    Raises: RankLost: another rank is, and says so.
    """
    versions = world.exchange(f"Foveal {__version__} with torch {torch.__version__}")
    others = [process for process, each in enumerate(versions) if each != versions[0]]
    if not others:
        return
    if world.process != others[0]:
        raise lost_rank()
    raise UserError(
        f"this process has {versions[others[0]]}, and rank 0 has {versions[0]}: install the same on all "
        "machines"
    )


def meet(world: World, run: RunFolder | None) -> str:
    """Return the path of the main rank's `run`. All ranks call this before the training."""
    return str(world.exchange(run and str(run.path.absolute()))[0])


def lead(together: Agreement, run: RunFolder) -> None:
    """Wait until the other ranks have opened the run of this one, the main rank.

    Raises: FailedElsewhere: a rank can't open it, and says why.
    """
    meet(together.world, run)
    together.exchange(None)


def note_started(run: RunFolder) -> None:
    """Note the run of this command, so that a launcher which starts the ranks again goes on with it."""
    note_run(str(run.path))
    note_for_restart(str(run.path.absolute()))


def start_new(together: Agreement, run: RunFolder) -> None:
    """Start the other ranks on a run that this one has just made. If they can't begin, remove the run.

    If another rank is killed, the run stays, as a launcher may go on with it.

    Raises: RankLost: a rank can't open the run, and says why, or was killed.
    """
    with together.ending_together():
        note_started(run)
        try:
            lead(together, run)
        except (FailedElsewhere, Interrupted):
            note_run("")
            note_for_restart("")
            shutil.rmtree(run.path)
            raise
        together.exchange(None)


def follow(world: World, signals: SignalHandler) -> None:
    """Train the run of the main rank until it is finished or stopped, and share its test.

    Raises: UserError: this rank does not see the run, or sees other data.
    Raises: RankLost: the training has diverged, which the main rank says, or another rank can't begin.
    """
    together = Agreement(world, signals)
    with together.ending_together():
        path = meet(world, None)
        parts = _open_as_main(path)
        together.exchange(None)  # all have opened the run
        together.exchange(None)  # its budget is extended
        note_for_restart(path)
    trainer = Trainer(
        parts.run, parts.task.model, make_objective(parts), parts.batches, parts.valid, world=world
    )
    try:
        with suppress(FinishedError):  # the main rank says so
            trainer.run(signals)
    except TrainingDiverged:
        raise lost_rank() from None
    if parts.tested is not None:
        parts, objective = trained_model(parts, trainer)
        test_together(parts, objective, "test", together)


def _open_as_main(path: str) -> TrainingParts:
    """Return what the run of the main rank, which has opened it, is trained with.

    Raises: UserError: this rank does not see the run, or sees other data.
    """
    if not Path(path).exists():
        raise UserError(
            f"{path}: rank 0 has its run there, and this process sees no such folder: give all machines the "
            "same folder, such as a shared --run"
        )
    try:
        return open_parts(path, None)
    except DataChangedError as error:
        raise UserError(
            f"{error.data}: this process reads other data there than rank 0, or none: give all machines the "
            "same files"
        ) from None
