"""The log of a training as a table and as curves, for runs of every kind."""

from pathlib import Path

from foveal.api.results.picture import Picture
from foveal.api.results.table import Table
from foveal.inspection.curves import curves_payload, read_metrics_log

KINDS = ("step", "evaluation")


def log_table(run: Path) -> Table:
    """Return a row for each step, and then one for each evaluation.

    Raises: UserError: a line of the log is damaged.
    """
    return Table([row for kind in KINDS for row in read_metrics_log(run / "metrics.jsonl", kind)])


def log_curves(run: Path, title: str, unit: str, loss_unit: str | None) -> Picture:
    """Return the curves of a training with their numbers. `unit` is the unit of the inputs of a step.

    Raises: UserError: a line of the log is damaged, or there is none.
    """
    return Picture(curves_payload(run / "metrics.jsonl", title, unit, loss_unit))
