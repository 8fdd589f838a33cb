"""What DATA is for, by what it looks like."""

from pathlib import Path

from foveal.config import TaskName
from foveal.core.errors import UserError
from foveal.data.catalogue import describe, names
from foveal.data.folders import TABLES
from foveal.data.parts import part_files
from foveal.data.rows import Row
from foveal.data.series import is_series, read_series
from foveal.data.tables import SUFFIXES, columns_of

TAGGED = (".conllu", ".conll")
COLUMNS: dict[TaskName, frozenset[str]] = {
    "translate": frozenset({"source", "target"}),
    "classify": frozenset({"text", "label"}),
    "tag": frozenset({"tokens", "tags"}),
    "series": frozenset({"values", "label"}),
    "steps": frozenset({"values", "labels"}),
}
"""Tables with these columns, named by convention; others are named by settings, and the task by --task."""


def infer_task(data: str) -> TaskName:
    """The task that DATA is for, a data set of the catalogue says its own; text of any kind is for a language
    model."""
    path = Path(data)
    if not path.exists():
        if data in names():
            return describe(data).task
        return "translate" if "," in data else "language"
    if any((path / table).is_file() for table in TABLES):
        return "transcribe"
    path = Path(part_files(data)["train"])
    suffix = path.suffix.lower()
    if suffix in TAGGED:
        return "tag"
    if path.is_file() and is_series(path):
        return _series_task(path)
    if path.is_file() and suffix in SUFFIXES:
        try:
            found = set(columns_of(path))
        except UserError:
            return "language"  # whose reader says what is wrong with the file
        return next((task for task, columns in COLUMNS.items() if columns <= found), "language")
    return "language"


def _series_task(path: Path) -> TaskName:
    """By what is labelled, of the first series that can be used."""
    try:
        first = next(row for row in read_series(path) if isinstance(row, Row))
    except UserError:
        return "series"  # whose reader says what is wrong with the file
    return "steps" if "labels" in first.fields else "series"
