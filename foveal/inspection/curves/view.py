"""The view `curves` of a run, or of several runs over each other."""

from collections.abc import Iterator
from dataclasses import dataclass

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.inspection.curves.log_records import LoggedTraining
from foveal.inspection.curves.panels import curves_payload
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View
from foveal.store.manifest import LogUnits
from foveal.store.run import RunFolder, open_run

AXES = ("step", "seconds", "tokens", "epoch")


@dataclass(frozen=True)
class CurvesOptions:
    with_: tuple[str, ...] | None = None
    """Another run of the same task, drawn over this one; may be given several times."""
    by: str = "step"
    """The axis: step, seconds, tokens or epoch."""


@register_view("curves")
class CurvesView(View[CurvesOptions]):
    summary = "Losses, gradients and rates of the training, with a diagnosis; of several runs with --with."
    Options = CurvesOptions
    depends_on_weights = needs_model = False

    def fits(self, run: InspectedRun) -> str:
        return "" if run.run.has_log else "it has no log of a training"

    def compute(
        self, run: InspectedRun, options: CurvesOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        """Read the logs."""
        if options.by not in AXES:
            raise UserError(f"--by {options.by}: expected {', '.join(AXES[:-1])} or {AXES[-1]}")
        training = logged_training(run.run, run.run.log_units or run.task.log_units)
        return curves_payload(training, [*_others(run, options.with_ or ())], options.by)


def curves_of_folder(folder: RunFolder) -> Payload:
    """Return what the view shows by default of a run that has a log and says what its log means.

    The run's task is not needed.

    Raises: UserError: the log is damaged.
    """
    assert folder.log_units is not None
    return curves_payload(logged_training(folder, folder.log_units))


def logged_training(folder: RunFolder, units: LogUnits) -> LoggedTraining:
    """Return the log of a run's training."""
    return LoggedTraining(folder, folder.path.name, units)


def _others(run: InspectedRun, paths: tuple[str, ...]) -> Iterator[LoggedTraining]:
    """Yield the logs of other runs.

    Raises: UserError: a path is no run with a log, or a run of another task.
    """
    for path in paths:
        folder, task = open_run(path), run.task
        if folder.has_own_module or folder.config.task.name != task.name:
            raise UserError(f"{path}: not of the task {task.name}, so its losses can't be compared")
        if not folder.has_log:
            raise UserError(f"{path}: it has no log of a training")
        yield logged_training(folder, task.log_units.model_copy(update={"num_outcomes": None}))
