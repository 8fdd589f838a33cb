"""`foveal evaluate RUN [DATA]`: measure a run on its held-out text, or on other data."""

from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter

from foveal.commands.training_report import measure, score_rows, show_report
from foveal.core.runtime import choose_device
from foveal.core.signals import Signals
from foveal.metrics.report import Report
from foveal.tasks.evaluation_data import held_out
from foveal.tasks.session import Loaded, load
from foveal.tasks.test_time_views import with_views
from foveal.ui.console import OUTPUT, facts_table, result_line

AMOUNTS = (
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
    views: str | None = None,
    scales: str | None = None,
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
    views
        Of a picture: centre, mirrored, moved (a pixel aside too), or ten (corners and centre, mirrored too),
        whose answers are averaged.
    scales
        At which of them: 1, or several as 1,1.125,1.25.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object with the scores on standard output.
    """
    with Signals():
        loaded = with_views(load(run, choose_device(device)), views, scales)
        split, amounts, scores, report = measured(loaded, data)
    if json:
        more = {} if report is None else report.to_json()
        result_line({"run": str(run), "split": split} | amounts | scores | more)
    else:
        task = loaded.config.task.name
        amount = ", ".join(f"{count:,} {key.replace('_', ' ')}" for key, count in amounts.items())
        rows = score_rows(task, split, scores)
        facts_table([("run", str(run)), ("data", f"{split}: {amount}"), *rows], OUTPUT)
        if report is not None:
            show_report(task, report, OUTPUT)


class Measured(NamedTuple):
    """The name of what was measured on, how much it is, and what was found."""

    split: str
    amounts: dict[str, int]
    scores: dict[str, float]
    report: Report | None


def measured(loaded: Loaded, data: str | None) -> Measured:
    """The scores of a run on its held-out data, or on all of `data`. UserError if it has none."""
    part, split, facts = held_out(loaded, data, "to measure it on")
    scores, report = measure(loaded.config, loaded.model, loaded.task, loaded.inputs, part, split)
    amounts = {key: facts[key] for key in AMOUNTS if key in facts}
    return Measured(split, amounts, scores, report)
