"""`foveal calibrate RUN`: make the probabilities of a run's labels match how often they are right."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from foveal.api.training.summary import shell_command
from foveal.core.errors import UserError
from foveal.core.runtime import resolve_device
from foveal.core.signals import SignalHandler
from foveal.tasks.calibration import fit_calibration, save_calibration
from foveal.tasks.data_overrides import with_columns
from foveal.tasks.session import Session, load
from foveal.ui.console import log, print_facts, print_json
from foveal.ui.progress_bar import ProgressBar

FEW_LABELS = 100
"""With fewer labels, the user is told that the temperature is uncertain."""


def calibrate(
    run: Path,
    data: str | None = None,
    /,
    *overrides: str,
    device: str = "auto",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Fit one temperature for the probabilities of RUN to its validation data, and store it in the run.

    `predict` and `evaluate` then use it. The labels stay the same.

    Parameters
    ----------
    run
        The run folder.
    data
        Other labeled data that training has not seen: a path or a name from `foveal data list`.
    overrides
        Names of the columns of DATA, such as data.text=review data.label=mood.
    device
        cpu, cuda, mps, or auto.
    json
        Print one JSON object with the result on standard output.
    """
    with SignalHandler():
        session = with_columns(load(run, resolve_device(device)), overrides)
        session.model.temperature = 1.0
        if data is None and "valid" not in session.run.manifest["data"]["facts"]["parts"]:
            raise UserError(
                f"{run}: trained without validation data: name labeled data that training has not seen: "
                "foveal calibrate RUN DATA"
            )
        held_out = session.training_data().valid if data is None else _unseen(session, data)
        with ProgressBar("calibrated") as progress:
            calibration = fit_calibration(session.run, session.task, session.objective, held_out, progress)
        save_calibration(session.run, calibration)
    if json:
        print_json({"run": str(run)} | asdict(calibration))
        return
    rows = [
        ("temperature", f"{calibration.temperature:.4g}, from {calibration.places:,} labels"),
        ("loss", f"{calibration.loss_before:.4f} before, {calibration.loss_after:.4f} after (nats)"),
        ("ece", f"{calibration.ece_before:.4f} before, {calibration.ece_after:.4f} after"),
        ("next", shell_command("evaluate", run)),
    ]
    print_facts(rows)
    if calibration.places < FEW_LABELS:
        log(f"only {calibration.places:,} labels: the temperature of so few is uncertain")


def _unseen(session: Session, data: str) -> Any:
    """Return all of DATA.

    Raises: UserError: the run was trained on rows of DATA, whose probabilities are too high.
    """
    lines: list[str] = []  # a refusal is a single line
    split = session.held_out(data, "", lines.append)
    if split.facts.get("trained_on"):
        raise UserError(
            f"{data}: the run was trained on rows of these data, and is too sure of them: name other rows"
        )
    for line in lines:
        log(line)
    return split.split_data
