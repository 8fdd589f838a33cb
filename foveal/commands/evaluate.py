"""`foveal evaluate RUN [DATA]`: measure a run on its held-out text, or on other data."""

from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from foveal.commands.training_report import evaluate_and_score, loss_rows, print_report
from foveal.core.runtime import resolve_device
from foveal.core.signals import SignalHandler
from foveal.metrics.report import Report
from foveal.tasks.session import Session, load
from foveal.tasks.test_time_views import with_test_time_views
from foveal.ui.console import STDOUT, print_facts, print_json

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


def evaluate(
    run: Path,
    data: str | None = None,
    /,
    *,
    tta: str | None = None,
    tta_scales: str | None = None,
    device: str = "auto",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Measure RUN on its test text (validation if it has none), or on all of DATA.

    Parameters
    ----------
    run
        The run folder.
    data
        Other data: a path or a name from `foveal data list`.
    tta
        Of a picture: none (the centre), flip (mirrored too), flip-shift (a pixel aside too), or ten-crop
        (corners and centre, mirrored too), whose answers are averaged.
    tta_scales
        At which of them: 1, or several as 1,1.125,1.25.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object with the scores on standard output.
    """
    with SignalHandler():
        loaded = with_test_time_views(load(run, resolve_device(device)), tta, tta_scales)
        split, amounts, scores, report = evaluate_run(loaded, data)
    if json:
        more = {} if report is None else report.to_json()
        print_json({"run": str(run), "split": split} | amounts | scores | more)
    else:
        task = loaded.task
        amount = ", ".join(f"{count:,} {key.replace('_', ' ')}" for key, count in amounts.items())
        rows = loss_rows(task, split, scores)
        print_facts([("run", str(run)), ("data", f"{split}: {amount}"), *rows], STDOUT)
        if report is not None:
            print_report(task, report, STDOUT)


class RunEvaluation(NamedTuple):
    """The name of what was measured on, how much it is, and what was found."""

    split: str
    amounts: dict[str, int]
    scores: dict[str, float]
    report: Report | None


def evaluate_run(loaded: Session, data: str | None) -> RunEvaluation:
    """The scores of a run on its held-out data, or on all of `data`. UserError if it has none."""
    part, split, facts = loaded.held_out(data, "to measure it on")
    scores, report = evaluate_and_score(loaded.task, loaded.objective, part, split)
    amounts = {key: facts[key] for key in SIZE_KEYS if key in facts}
    return RunEvaluation(split, amounts, scores, report)
