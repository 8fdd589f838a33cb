"""Values in memory, stored once as a table in the cache under their hash, so that runs on them resume.

The table is Parquet. Without pyarrow, which few need, it is JSON lines, which can't hold images.
"""

import hashlib
import json
from collections.abc import Collection
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from foveal.api.values.cells import as_text, convert_columns
from foveal.api.values.columns import LABEL, SOURCE, Columns, columns_of
from foveal.api.values.reader import Reader
from foveal.api.values.single import as_rows
from foveal.config import suggest
from foveal.core.errors import UserError
from foveal.core.extras import require
from foveal.store.cache import file_lock, values_folder
from foveal.store.durable import atomic_write
from foveal.tasks.registry import all_tasks, task_class
from foveal.ui.console import log, truncate

ROWS_PER_GROUP = 1024
"""Rows of a row group, few enough for large images."""
MAX_LABELS, PAIRS_PER_LABEL = 50, 3
"""Different second texts at most for which pairs of texts may be texts with labels, and pairs of each."""
LABELED, PAIRS = ("text", LABEL), ("source", "target")
"""The columns that pairs of texts can be."""
BOTH = (LABELED, PAIRS)
ARRAY_COLUMNS = {"image": "image", "values": "series"}
"""The columns of images and of series, and these kinds of source."""
MAX_NAME_LETTERS, SHOWN_LETTERS = 255, 40
"""Letters of the name of a file at most, and letters of a text that an error shows."""


class StoredValues(NamedTuple):
    """Values as DATA: a path or name, and facts about the columns."""

    path: str
    label: str | None
    """The column of labels, if it has another name than `label`."""
    number_columns: frozenset[str] = frozenset()
    """The columns of numbers and truth values."""
    kind: str = ""
    """The kind of source, if its column says it: image or series."""


def stored_path(values: Any, reader: Reader) -> str:
    """Return DATA for values that a run reads: a path or name unchanged, else the table in the cache.

    Raises: UserError: the values are of no kind that is read, or can be read in two ways.
    """
    if isinstance(values, str | Path):
        return _path(str(values))
    columns = convert_columns(_named_pairs(columns_of(as_rows(values, reader)), reader), reader)
    return _write(values, *_table_file(columns, reader.needed))


def store_values(values: Any, reader: Reader) -> StoredValues:
    """Return DATA for values to train on. A single text becomes a text file, which can be split.

    Raises: UserError: the values are of no kind that is read, or can be read in two ways.
    """
    if isinstance(values, str | Path):
        return StoredValues(_path(str(values)), reader.label)
    if isinstance(values, list | tuple) and len(values) == 1 and isinstance(values[0], str):
        content = values[0].encode("utf-8", "surrogatepass")
        return StoredValues(_write(values, content, ".txt"), reader.label)
    columns = convert_columns(_named_pairs(columns_of(values), reader), reader)
    has_arrays = not columns.keys().isdisjoint(ARRAY_COLUMNS)
    label = _label_column(columns, reader.label) if has_arrays else reader.label
    numbers = frozenset(name for name, cells in columns.items() if _are_numbers(cells))
    path = _write(values, *_table_file(columns, reader.needed))
    kind = next((kind for name, kind in ARRAY_COLUMNS.items() if name in columns), "")
    return StoredValues(path, None if label == LABEL else label, numbers, kind)


def _write(values: Any, content: bytes, suffix: str) -> str:
    """Write the content of a file into the cache, unless it is there, and return its path."""
    digest = hashlib.sha256(content).hexdigest()[:16]
    path = values_folder(digest) / f"{type(values).__name__}{suffix}"
    with file_lock(path):
        if not path.exists():
            atomic_write(path, content)
    return str(path)


def _path(name: str) -> str:
    """Return a path or name.

    Raises: UserError: it is a text.
    """
    if "\n" in name.strip() or max(map(len, name.split("/"))) > MAX_NAME_LETTERS:
        start = truncate(" ".join(name.split()), SHOWN_LETTERS)
        raise UserError(
            f"a text of {len(name):,} letters ({start!r}) where a path is read; give it in a list: [text]"
        )
    return name


def _are_numbers(cells: list[Any]) -> bool:
    """Return whether cells, or the items of lists, are numbers or truth values."""
    first = next((cell for cell in cells if cell is not None), None)
    if isinstance(first, list):
        first = next(iter(first), None)
    return isinstance(first, int | float)


def write_table(columns: Columns, folder: Path) -> Path:
    """Write a table with the columns into a folder, and return its path.

    Raises: UserError: a cell is of a kind that is not read, or of another kind than the rest of its column.
    """
    content, suffix = _table_file(
        convert_columns(columns, Reader(needed=frozenset(columns))), frozenset(columns)
    )
    path = folder / f"table{suffix}"
    path.write_bytes(content)
    return path


def _named_pairs(columns: Columns, reader: Reader) -> Columns:
    """Return the columns of pairs without names by their names in a table: a source, and the column of
    targets of the reader, or `text` and `label`, or `source` and `target`.

    Raises: UserError: pairs of texts can be both, and no task says which.
    """
    if [*columns] != [SOURCE, LABEL]:
        return columns
    first, second = columns.values()
    if reader.target or not all(isinstance(cell, str) for cell in first):
        return {SOURCE: first, reader.target or LABEL: second}
    different = len({*map(str, second)})
    may_be_labels = different <= MAX_LABELS and different * PAIRS_PER_LABEL <= len(second)
    names = PAIRS if not may_be_labels else LABELED
    if reader.task is not None:
        names = LABELED if LABEL in task_class(reader.task).columns else PAIRS
    elif may_be_labels and all(isinstance(cell, str) for cell in second):
        tasks = " or ".join(f"task='{each.name}'" for each in all_tasks().values() if each.columns in BOTH)
        raise UserError(f"pairs of texts: texts with labels, or sources with targets? give {tasks}")
    return dict(zip(names, (first, second), strict=True))


def _label_column(columns: Columns, label: str | None) -> str | None:
    """Return the column of labels of images or series: `label`, or the only other column.

    Raises: UserError: there is no column `label`.
    """
    others = [name for name in columns if name not in ARRAY_COLUMNS]
    if label is not None and label not in columns:
        raise UserError(f"no column '{label}'{suggest(label, others) if others else '; give labels'}")
    if label is None and len(others) == 1 and others[0] not in ("labels", "text"):
        return others[0]
    return label


def _table_file(columns: Columns, needed: Collection[str]) -> tuple[bytes, str]:
    """Return the table as a file, and the file's suffix. Columns that are `needed` must have one type.

    Raises: UserError: the table has images, and pyarrow is missing.
    """
    has_images = any(isinstance(cell, dict) for cells in columns.values() for cell in cells)
    if find_spec("pyarrow") is None and not has_images:
        return _json_lines(columns), ".jsonl"
    require("pyarrow", "a table of images in memory")
    return _parquet(columns, needed), ".parquet"


def _json_lines(columns: Columns) -> bytes:
    rows = (dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True))
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode("ascii")


def _advice(error: Exception) -> str:
    """Return how to mend a column that is no column of a table."""
    if isinstance(error, UnicodeEncodeError):
        return "leave out half characters: text.encode('utf-8', 'replace').decode()"
    return "give texts" if isinstance(error, OverflowError) else "give one type a column"


def _parquet(columns: Columns, needed: Collection[str]) -> bytes:
    """Return the table as a Parquet file.

    Raises: UserError: a column that is needed has cells of several types.
    """
    import pyarrow
    import pyarrow.parquet

    arrays = {}
    for name, cells in columns.items():
        try:
            arrays[name] = pyarrow.array(cells)
        except (pyarrow.ArrowException, ValueError, TypeError, OverflowError) as error:
            reason = f"'{name}': {str(error).splitlines()[0]}"
            if name in needed:
                raise UserError(f"{reason}; {_advice(error)}") from None
            log(f"{reason}: not read, so stored as text")
            arrays[name] = pyarrow.array(as_text(cells))
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(arrays), sink, row_group_size=ROWS_PER_GROUP)
    content: bytes = sink.getvalue().to_pybytes()
    return content
