"""The log of a training as a table, for runs of every kind."""

from pathlib import Path

from foveal.api.results.table import Table
from foveal.inspection.curves.log_records import read_metrics_log

KINDS = ("step", "evaluation")


def log_table(run: Path) -> Table:
    """Return a row for each step, and then one for each evaluation.

    Raises: UserError: a line of the log is damaged.
    """
    records = read_metrics_log(run / "metrics.jsonl")
    return Table([row for kind in KINDS for row in records[kind]])
