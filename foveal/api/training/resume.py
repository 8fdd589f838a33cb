"""Continue a stopped run exactly where it was, or a finished one with a larger budget."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foveal.api.training.report import TrainingParts, eval_batches, train_and_report
from foveal.core.runtime import keep_freed_memory, resolve_device, resolve_precision
from foveal.core.signals import SignalHandler
from foveal.store.manifest import data_facts
from foveal.store.run import check_resumable, environment_changes
from foveal.tasks.open_logged import open_logged
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model, prepare_run_data
from foveal.tasks.warm_start import load_initial_weights
from foveal.training.extension import extend_budget
from foveal.training.loggers.registry import make_loggers
from foveal.ui.activity import Activity
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
) -> None:
    """Train a run from its last checkpoint to its end, and report it. `on_result` is called with the scores.

    Raises: UserError: the run is finished, its data have changed, or it can't be resumed.
    """
    run, device = open_logged(path, log, options.trust_plugin), options.device
    check_resumable(run)
    loggers = make_loggers(options.log, path)
    torch_device = resolve_device(device or data_facts(run.manifest, path).device)
    resolve_precision(run.config.training.precision, torch_device)
    if changes := environment_changes(run):
        log(f"made with {changes}: training continues, but the result may differ in the last bits")
    with Activity(f"reading the data of {path}"):
        data = prepare_run_data(run, log)
    keep_freed_memory()
    task = task_of(run.config).bind(data.processor)
    model = build_model(task, torch_device)
    load_initial_weights(run, model)
    task = task.bind(data.processor, model)
    batches, valid_batches = task.train_batches(data.train), eval_batches(task, data.valid)
    if options.budget is not None:
        extend_budget(run, options.budget, batches.per_epoch, log)
    parts = TrainingParts(run, task, data, batches, valid_batches)
    train_and_report(parts, signals, on_result, [*options.callbacks, *loggers])
