"""`foveal resume RUN`: continue a stopped run exactly where it was."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from foveal.api.resume import resume_run
from foveal.api.training_report import ignore_result
from foveal.core.signals import SignalHandler
from foveal.ui.console import print_json


def resume(
    run: Path, /, *, device: str | None = None, json: Annotated[bool, Parameter(negative="")] = False
) -> None:
    """Continue RUN where it was stopped; the result is the same as without the stop.

    Parameters
    ----------
    run
        The run folder.
    device
        cpu, cuda, mps, or auto; the run's own if not given.
    json
        Print one JSON object with the result on standard output.
    """
    with SignalHandler() as signals:
        resume_run(run, device, signals, print_json if json else ignore_result)
