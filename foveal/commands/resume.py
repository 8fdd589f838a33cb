"""`foveal resume RUN`: continue a stopped run exactly where it was."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.api.training.follow import check_versions, follow
from foveal.api.training.report import ignore_result
from foveal.api.training.resume import ResumeOptions, resume_run
from foveal.commands.parallel import NO_PARALLEL_OPTIONS, ParallelOptions
from foveal.commands.ranks import launch_ranks
from foveal.core.errors import UserError
from foveal.core.signals import SignalHandler
from foveal.distributed.restarts import run_before_restart
from foveal.distributed.world import joined_world
from foveal.ui.console import print_json
from foveal.ui.error_line import print_error


def resume(
    run: Path,
    /,
    *overrides: Annotated[str, Parameter(show=False)],
    budget: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    log: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    device: str | None = None,
    parallel: ParallelOptions = NO_PARALLEL_OPTIONS,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Continue RUN where it was stopped; the result is the same as without the stop.

    Parameters
    ----------
    run
        The run folder.
    overrides
        Settings, which a run can't change.
    budget
        What to add to the training, such as +10m or +2000steps, or its new total, such as 20m; a finished run
        goes on, too.
    log
        Loggers beside those of the run: tensorboard, mlflow, trackio, wandb or csv; may be repeated.
    device
        cpu, cuda, mps, or auto; the run's own if not given.
    json
        Print one JSON object with the result on standard output.
    """
    if overrides:
        raise UserError(
            f"{overrides[0]}: a run goes on with its own settings, in {run}/config.toml: leave this out, or "
            "start another run"
        )
    make_ranks = parallel.make_ranks()
    # An added budget must not be left out or added twice, so the run is known once its budget is.
    if launch_ranks(parallel, run if budget is None else None):
        return
    with SignalHandler() as signals, joined_world(print_error, ranks=make_ranks) as world:
        check_versions(world)
        if run_before_restart(world):
            budget = None  # it is extended
        if not world.is_main:
            follow(world, signals)
            return
        options = ResumeOptions(device, budget, log)
        resume_run(run, options, signals, print_json if json else ignore_result, world)
