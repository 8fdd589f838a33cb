"""Values in memory, stored once as Parquet in the cache under their hash, so that runs on them resume."""

import hashlib
from pathlib import Path
from typing import Any

from foveal.api.values.cells import convert_columns
from foveal.api.values.columns import LABEL, SOURCE, Columns, columns_of
from foveal.core.errors import UserError
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


def stored_path(values: Any, task: str | None = None) -> str:
    """Return DATA for values: a path or name unchanged, else the Parquet file in the cache with the values.

    `task` is the task that the user names, which says what pairs of texts are.

    Raises: UserError: the values are of no kind that is read, or can be read in two ways.
    """
    if isinstance(values, str | Path):
        return str(values)
    columns = columns_of(values)
    table = convert_columns(_named_pairs(columns, task))
    content = _parquet(_with_label(table))
    digest = hashlib.sha256(content).hexdigest()[:16]
    path = values_folder(digest) / f"{type(values).__name__}.parquet"
    with file_lock(path):
        if not path.exists():
            atomic_write(path, content)
    return str(path)


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


def _with_label(columns: Columns) -> Columns:
    """Return the columns of images or series with the only other column named `label`."""
    sources = [name for name in columns if name in ("image", "values")]
    others = [name for name in columns if name not in sources]
    if len(sources) != 1 or len(others) != 1 or others[0] in ("labels", "text"):
        return columns
    return {sources[0]: columns[sources[0]], LABEL: columns[others[0]]}


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
