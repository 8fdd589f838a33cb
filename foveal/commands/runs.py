"""`foveal runs`: the runs in a folder as a table."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from foveal.commands.watch import watch_runs
from foveal.store.cache import shorten_unpacked_paths
from foveal.store.run_list import RunSummary, list_runs
from foveal.ui.console import STDOUT, log, print_json

MAX_DATA_LENGTH = 30
"""Characters of the data's path at most; its end says most."""
DROPPED = ("minutes", "data", "model")
"""Columns that are left out of a narrow terminal, in this order."""


def runs(
    folder: Path = Path("runs"),
    /,
    *,
    sort: Literal["run", "data", "model", "score", "minutes", "state"] = "run",
    watch: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """List the runs in FOLDER (runs if not given): data, model, score, minutes and state.

    Parameters
    ----------
    folder
        The folder that has the runs.
    sort
        The column to sort by; scores with the best first, by their names.
    watch
        Show the runs in the browser, the one that is training first.
    json
        Print one JSON object with all runs on standard output.
    """
    rows = sorted(list_runs(folder), key=lambda row: _sort_key(row, sort))
    if watch:
        watch_runs(folder, rows)
    elif json:
        print_json({"runs": [asdict(row) for row in rows]})
    elif rows:
        STDOUT.print_table([_cells(row) for row in rows], DROPPED)
        for row in rows:
            if row.state.startswith("damaged"):
                log(f"{row.run}: {row.state}")
    else:
        log(f"{folder}: no runs in it")


def _sort_key(row: RunSummary, column: str) -> tuple[Any, ...]:
    """Return what a row is sorted by. Rows without a value come last."""
    value = getattr(row, column)
    if value is None:
        return (1, "", 0.0)
    if column == "score":
        is_loss = row.score_name == "loss"
        return (0, row.score_name, value if is_loss else -value)
    return (0, "", value) if isinstance(value, float) else (0, value, 0.0)


def _cells(row: RunSummary) -> dict[str, str]:
    data = shorten_unpacked_paths(row.data or "")
    return {
        "run": row.run,
        "data": data if len(data) <= MAX_DATA_LENGTH else f"... {data[4 - MAX_DATA_LENGTH :]}",
        "model": row.model or "",
        "score": "" if row.score is None else f"{row.score_name} {row.score:.4f} ({row.score_split})",
        "minutes": "" if row.minutes is None else f"{row.minutes:.1f}",
        "state": row.state.partition(":")[0],
    }
