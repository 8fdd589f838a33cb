"""Values in memory, stored once as a table in the cache under their hash, so that runs on them resume.

The table is Parquet. Without pyarrow, which few need, it is JSON lines, which can't hold images.
"""

import hashlib
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from foveal.api.values.cells import convert_columns
from foveal.api.values.columns import LABEL, SOURCE, Columns, columns_of
from foveal.config import suggest
from foveal.core.errors import UserError
from foveal.core.extras import require
from foveal.store.cache import file_lock, values_folder
from foveal.store.durable import atomic_write
from foveal.tasks.registry import all_tasks, task_class

ROWS_PER_GROUP = 1024
"""Rows of a row group, few enough for large images."""
MAX_LABELS, PAIRS_PER_LABEL = 50, 3
"""Different second texts at most for which pairs of texts may be texts with labels, and pairs of each."""
LABELED, PAIRS = ("text", LABEL), ("source", "target")
"""The columns that pairs of texts can be."""
BOTH = (LABELED, PAIRS)
ARRAY_COLUMNS = ("image", "values")
"""The columns of images and of series."""


class StoredValues(NamedTuple):
    """Values as DATA: a path or name, and the column of labels, if it has another name than `label`."""

    path: str
    label: str | None


def stored_path(values: Any, task: str | None = None) -> str:
    """Return the path of `store_values`."""
    return store_values(values, task, None).path


def store_values(values: Any, task: str | None, label: str | None) -> StoredValues:
    """Return DATA for values: a path or name unchanged, else the table in the cache with the values.

    `task` is the task that the user names, which says what pairs of texts are. `label` is the column of
    labels; that of images or series becomes `label`.

    Raises: UserError: the values are of no kind that is read, or can be read in two ways.
    """
    if isinstance(values, str | Path):
        return StoredValues(str(values), label)
    columns = convert_columns(_named_pairs(columns_of(values), task))
    if not columns.keys().isdisjoint(ARRAY_COLUMNS):
        columns, label = _with_label(columns, label), None
    content, suffix = _table_file(columns)
    digest = hashlib.sha256(content).hexdigest()[:16]
    path = values_folder(digest) / f"{type(values).__name__}{suffix}"
    with file_lock(path):
        if not path.exists():
            atomic_write(path, content)
    return StoredValues(str(path), label)


def write_table(columns: Columns, folder: Path) -> Path:
    """Write a table with the columns into a folder, and return its path.

    Raises: UserError: a cell is of a kind that is not read, or of another kind than the rest of its column.
    """
    content, suffix = _table_file(convert_columns(columns))
    path = folder / f"table{suffix}"
    path.write_bytes(content)
    return path


def _named_pairs(columns: Columns, task: str | None) -> Columns:
    """Return the columns of pairs of texts by their names in a table: `text` and `label`, or `source` and
    `target`.

    Raises: UserError: the pairs can be both, and no task says which.
    """
    if [*columns] != [SOURCE, LABEL] or not all(isinstance(cell, str) for cell in columns[SOURCE]):
        return columns
    first, second = columns.values()
    different = len({*map(str, second)})
    may_be_labels = different <= MAX_LABELS and different * PAIRS_PER_LABEL <= len(second)
    names = PAIRS if not may_be_labels else LABELED
    if task is not None:
        names = LABELED if LABEL in task_class(task).columns else PAIRS
    elif may_be_labels and all(isinstance(cell, str) for cell in second):
        tasks = " or ".join(f"task='{each.name}'" for each in all_tasks().values() if each.columns in BOTH)
        raise UserError(f"pairs of texts: texts with labels, or sources with targets? give {tasks}")
    return dict(zip(names, (first, second), strict=True))


def _with_label(columns: Columns, label: str | None) -> Columns:
    """Return the columns of images or series with the column `label`, or the only other one, named `label`.

    Raises: UserError: there is no column `label`.
    """
    others = [name for name in columns if name not in ARRAY_COLUMNS]
    if label is not None and label not in columns:
        raise UserError(f"no column '{label}'{suggest(label, others) if others else '; give labels'}")
    if label is None and len(others) == 1 and others[0] not in ("labels", "text"):
        label = others[0]
    return {LABEL if name == label else name: cells for name, cells in columns.items()}


def _table_file(columns: Columns) -> tuple[bytes, str]:
    """Return the table as a file, and the file's suffix.

    Raises: UserError: the table has images, and pyarrow is missing.
    """
    has_images = any(isinstance(cell, dict) for cells in columns.values() for cell in cells)
    if find_spec("pyarrow") is None and not has_images:
        return _json_lines(columns), ".jsonl"
    require("pyarrow", "a table of images in memory")
    return _parquet(columns), ".parquet"


def _json_lines(columns: Columns) -> bytes:
    rows = (dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True))
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode("ascii")


def _parquet(columns: Columns) -> bytes:
    """Return the table as a Parquet file.

    Raises: UserError: a column has cells of several types.
    """
    import pyarrow
    import pyarrow.parquet

    arrays = {}
    for name, cells in columns.items():
        try:
            arrays[name] = pyarrow.array(cells)
        except (pyarrow.ArrowException, ValueError, TypeError, OverflowError) as error:
            raise UserError(f"'{name}': {str(error).splitlines()[0]}; give one type a column") from None
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(arrays), sink, row_group_size=ROWS_PER_GROUP)
    content: bytes = sink.getvalue().to_pybytes()
    return content
