"""`foveal resume RUN`: continue a stopped run exactly where it was."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.api.training_report import eval_batches, train_and_report
from foveal.core.runtime import keep_freed_memory, resolve_device
from foveal.core.signals import SignalHandler
from foveal.store.manifest import data_facts
from foveal.store.run import check_resumable, environment_changes
from foveal.tasks.registry import task_of
from foveal.tasks.session import build_model, open_logged, prepare_run_data
from foveal.tasks.warm_start import load_initial_weights
from foveal.ui.activity import Activity
from foveal.ui.console import log


def resume(
    run: Path, /, *, device: str | None = None, json: Annotated[bool, Parameter(negative="")] = False
) -> None:
    """Continue RUN where it was stopped; the result is the same as without the stop.

    Parameters
    ----------
    run
        The run folder.
    device
        cpu, cuda, or auto; the run's own if not given.
    json
        Print one JSON object with the result on standard output.
    """
    with SignalHandler() as signals:
        opened = open_logged(run)
        check_resumable(opened)
        torch_device = resolve_device(device or data_facts(opened.manifest, run).device)
        if changes := environment_changes(opened):
            log(f"made with {changes}: training continues, but the result may differ in the last bits")
        with Activity(f"reading the data of {run}"):
            data = prepare_run_data(opened, log)
        keep_freed_memory()
        task = task_of(opened.config).bind(data.processor)
        model = build_model(task, torch_device)
        load_initial_weights(opened, model)
        task = task.bind(data.processor, model)
        batches, valid = task.train_batches(data.train), eval_batches(task, data.valid)
        train_and_report(opened, task, data, batches, valid, signals, json)
