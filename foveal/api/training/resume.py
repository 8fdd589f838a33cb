"""Continue a stopped run exactly where it was, or a finished one with a larger budget."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveal.api.training.follow import check_world, lead, note_started
from foveal.api.training.parts import open_parts
from foveal.api.training.report import train_and_report
from foveal.core.signals import SignalHandler
from foveal.distributed.world import ONE_PROCESS, World
from foveal.store.run import open_run
from foveal.training.agreement import Agreement
from foveal.training.extension import extend_budget
from foveal.training.loggers.registry import check_loggers, make_loggers
from foveal.ui.console import log


@dataclass(frozen=True)
class ResumeOptions:
    """How to go on with a run."""

    device: str | None = None
    """cpu, cuda, mps, or auto; the run's own if not given."""
    budget: str | None = None
    """A new total, such as 20m, or what to add, such as +10m; a finished run goes on, too."""
    log: tuple[str, ...] = ()
    """More loggers than the run has."""
    callbacks: tuple[Any, ...] = ()
    trust_plugin: bool = False
    """Whether the code of plugins that the run keeps may be executed."""


def resume_run(
    path: Path,
    options: ResumeOptions,
    signals: SignalHandler,
    on_result: Callable[[dict[str, Any]], None],
    world: World = ONE_PROCESS,
) -> None:
    """Train a run from its last checkpoint to its end, and report it. `on_result` is called with the scores.
    The other ranks of the `world` follow.

    Raises: UserError: the run is finished, its data have changed, or it can't be resumed.
    Raises: RankLost: another rank can't open the run, and says why.
    """
    check_loggers(options.log)
    check_world(open_run(path).config.training, world)
    parts = open_parts(path, options.device, options.trust_plugin)
    world.check(parts.task.new_model)
    together = Agreement(world, signals)
    with together.ending_together():
        lead(together, parts.run)
        if options.budget is not None:
            extend_budget(parts.run, options.budget, parts.batches.per_epoch, log)
        note_started(parts.run)
        together.exchange(None)
    loggers = make_loggers(options.log, path)
    train_and_report(parts, signals, on_result, [*options.callbacks, *loggers], world)
