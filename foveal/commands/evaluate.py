"""`foveal evaluate RUN [DATA]`: score a run on its held-out data, or on other data."""

from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from foveal.api.training_report import evaluate_and_score, loss_rows, print_report
from foveal.core.runtime import resolve_device
from foveal.core.signals import SignalHandler
from foveal.metrics.report import Report
from foveal.tasks.data_overrides import with_columns
from foveal.tasks.session import Session, load
from foveal.tasks.test_time_views import with_test_time_views
from foveal.ui.activity import Activity
from foveal.ui.console import STDOUT, log, print_facts, print_json

SIZE_KEYS = (
    "examples",
    "images",
    "frames",
    "steps",
    "words",
    "characters",
    "tokens",
    "source_tokens",
    "target_tokens",
)
"""The facts about a split that are its sizes, in the order in which they are printed."""


def evaluate(
    run: Path,
    data: str | None = None,
    /,
    *overrides: str,
    tta: str | None = None,
    tta_scales: str | None = None,
    device: str = "auto",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Score RUN on its test data (or its validation data, if it has no test data), or on all of DATA.

    Parameters
    ----------
    run
        The run folder.
    data
        Other data: a path or a name from `foveal data list`.
    overrides
        Names of the columns of DATA, such as data.text=review data.label=mood.
    tta
        Views of an image whose predictions are averaged: none (the center alone), flip (the mirror image,
        too), flip-shift (also shifted by a pixel), or ten-crop (center and corners, and mirror images).
    tta_scales
        The scales of these views: 1, or several such as 1,1.125,1.25.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object with the scores on standard output.
    """
    with SignalHandler():
        session = with_test_time_views(load(run, resolve_device(device)), tta, tta_scales)
        session = with_columns(session, overrides)
        log_calibration(session)
        split, sizes, scores, report, trained_on = evaluate_run(session, data)
    if json:
        more = {} if report is None else report.to_json()
        more |= {"trained_on": True} if trained_on else {}
        print_json({"run": str(run), "split": split} | sizes | scores | more | calibration_json(session))
    else:
        task = session.task
        size = ", ".join(f"{count:,} {key.replace('_', ' ')}" for key, count in sizes.items())
        rows = loss_rows(task, split, scores, report)
        print_facts([("run", str(run)), ("data", f"{split}: {size}"), *rows], STDOUT)
        if report is not None:
            print_report(task, report, STDOUT)


def log_calibration(session: Session) -> None:
    """Say that a run is calibrated."""
    if session.temperature != 1:
        log(f"calibrated: probabilities at temperature {session.temperature:.4g} (foveal calibrate)")


def calibration_json(session: Session) -> dict[str, float]:
    """Return the temperature of a calibrated run."""
    return {} if session.temperature == 1 else {"temperature": session.temperature}


class RunEvaluation(NamedTuple):
    """The name of the data, their sizes, the loss with its metrics, and a report on the outputs."""

    split: str
    sizes: dict[str, int]
    scores: dict[str, float]
    report: Report | None
    trained_on: bool
    """Whether the run was trained on rows of the data."""


def evaluate_run(session: Session, data: str | None) -> RunEvaluation:
    """Score a run on its held-out data, or on all of `data`.

    Raises: UserError: the run has no held-out data.
    """
    with Activity(f"reading {data or session.run.path}"):
        part, split, facts = session.held_out(data, "to measure it on")
    scores, report = evaluate_and_score(session.task, session.objective, part, split)
    sizes = {key: facts[key] for key in SIZE_KEYS if key in facts}
    trained_on = bool(facts.get("trained_on"))
    return RunEvaluation(split, sizes, scores, report, trained_on)
