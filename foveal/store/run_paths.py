"""Where runs are, and the names of new ones."""

import re
from pathlib import Path

RUNS_FOLDER = Path("runs")
"""Default folder of runs."""


def default_run_path(data: str, preset: str, parent: Path = RUNS_FOLDER) -> Path:
    """Return the first unused `runs/<data>-<preset>-<n>`."""
    path = Path(data)
    if path.name in ("", ".."):  # of `.`, whose own name has to be looked up
        path = path.resolve()
    stem = re.sub(r"[^\w.-]+", "-", f"{path.stem or 'data'}-{Path(preset).stem}")
    number = 1
    while (parent / f"{stem}-{number}").exists():
        number += 1
    return parent / f"{stem}-{number}"


def next_run_path(path: Path) -> Path:
    """Return the first unused path after `runs/<data>-<preset>-<n>`."""
    stem, _, number = path.name.rpartition("-")
    count = int(number) + 1
    while (new := path.with_name(f"{stem}-{count}")).exists():
        count += 1
    return new
