"""`foveal resume RUN`: go on with a run that was stopped, exactly where it was."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.commands.training_report import train_and_report
from foveal.core.runtime import choose_device, keep_freed_memory
from foveal.core.signals import Signals
from foveal.store.run import changed_machine, open_run
from foveal.tasks.session import build_model, load_start, prepare_again
from foveal.ui.console import say


def resume(
    run: Path, /, *, device: str | None = None, json: Annotated[bool, Parameter(negative="")] = False
) -> None:
    """Go on with RUN where it was stopped; it ends as if it had never been.

    Parameters
    ----------
    run
        The run folder.
    device
        cpu, cuda, or auto; the run's own if not given.
    json
        Print one JSON object with the result on standard output.
    """
    with Signals() as signals:
        opened = open_run(run)
        chosen = choose_device(device or opened.facts["data"]["device"])
        if then := changed_machine(opened):
            say(f"made with {then}: it goes on, but need not end bit for bit as it would have")
        data = prepare_again(opened, say)
        keep_freed_memory()
        model = build_model(opened.config, data.inputs, chosen)
        load_start(opened, model)
        train_and_report(opened, model, data, signals, json)
