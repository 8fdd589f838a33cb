"""Rows of `.parquet` tables (pyarrow).

A cell that is repeated, or compresses well, takes few bytes of a file and many of memory. Therefore large
columns are kept as indices of their different cells, and cells are counted before they are written out.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.core.extras import require
from foveal.data.core.fields import Fields, Record, repeated_name_error
from foveal.data.files.file_bytes import MAX_FILE_BYTES
from foveal.data.files.lines import too_long
from foveal.data.files.unpacked_size import check_unpacked_size
from foveal.data.files.utf8 import open_file

BATCH_ROWS, BATCH_BYTES = 128, 1 << 26
"""Most rows that are read at a time, and about the most bytes."""
MAX_DECODED_ROW_BYTES, MAX_DECODED_BYTES = 1 << 23, 1 << 27
"""Most bytes of a row, if every cell is as large as possible, and of a batch of such rows. Columns with
larger cells are kept as indices."""
INDEX_BYTES = 4
"""Bytes in memory of a cell that repeats another."""


def parquet_columns(path: Path) -> list[str]:
    """Return the names of a table's columns.

    Raises: UserError: the file is not Parquet, or two columns have the same name.
    """
    with _open(path) as table:
        names: list[str] = table.schema_arrow.names
    if error := repeated_name_error(names):
        raise UserError(f"{path}: {error}")
    return names


def parquet_rows(path: Path, columns: Sequence[str], max_bytes: int) -> Iterator[Record]:
    """Read the `columns` of each row. A text of more than `max_bytes` is a reason not to use its row.

    Raises: UserError: the file is not Parquet, or unpacks to implausibly many bytes.
    """
    with _open(path) as table:
        large, batch_rows = _plan(path, table, columns)
    number = decoded = 0
    with _open(path, large) as table:
        for batch in table.iter_batches(batch_size=batch_rows, columns=[*columns]):
            for rows, size in _bounded(batch):
                if len(rows) == 1 and size > MAX_FILE_BYTES:
                    number += 1
                    yield f"row {number}", too_long(min(max_bytes, MAX_FILE_BYTES))
                    continue
                decoded += size
                check_unpacked_size(path, decoded, " or more")
                for values in zip(*(rows.column(name) for name in columns), strict=True):
                    number += 1
                    yield f"row {number}", _row_values(columns, values, max_bytes)


def _plan(path: Path, table: Any, columns: Sequence[str]) -> tuple[list[str], int]:
    """Return the columns that are to be kept as indices, and the rows of a batch.

    Raises: UserError: the columns claim to be implausibly large.
    """
    prefixes = tuple(f"{column}." for column in columns)
    large: set[str] = set()
    total, batch_rows = 0, BATCH_ROWS
    for index in range(table.metadata.num_row_groups):
        group = table.metadata.row_group(index)
        chunks = [group.column(column) for column in range(group.num_columns)]
        for chunk in (chunk for chunk in chunks if f"{chunk.path_in_schema}.".startswith(prefixes)):
            cells = -(-chunk.num_values // max(1, group.num_rows))
            size = chunk.total_uncompressed_size + INDEX_BYTES * chunk.num_values
            total += size
            batch_rows = min(batch_rows, BATCH_BYTES * group.num_rows // max(1, size))
            if chunk.physical_type != "BYTE_ARRAY":
                continue
            largest_row = max(1, cells * chunk.total_uncompressed_size)
            if largest_row > MAX_DECODED_ROW_BYTES:
                large.add(chunk.path_in_schema)
            else:
                batch_rows = min(batch_rows, MAX_DECODED_BYTES // largest_row)
    check_unpacked_size(path, total)
    return sorted(large), max(1, batch_rows)


def _bounded(batch: Any) -> Iterator[tuple[Any, int]]:
    """Yield the batch, or each of its rows if they are large, and the bytes of all cells written out."""
    size = sum(map(_decoded_bytes, batch.columns))
    if size <= BATCH_BYTES:
        yield batch, size
        return
    for index in range(len(batch)):
        row = batch.slice(index, 1)
        yield row, sum(map(_decoded_bytes, row.columns))


def _decoded_bytes(array: Any) -> int:
    import pyarrow
    import pyarrow.compute

    if isinstance(array, pyarrow.DictionaryArray) and _has_lengths(array.type.value_type):
        lengths = pyarrow.compute.binary_length(array.dictionary)
        return pyarrow.compute.sum(lengths.take(array.indices)).as_py() or 0
    if isinstance(array, pyarrow.StructArray):
        return sum(map(_decoded_bytes, array.flatten()))
    if isinstance(array, pyarrow.ListArray | pyarrow.LargeListArray | pyarrow.FixedSizeListArray):
        return _decoded_bytes(array.flatten())
    if isinstance(array, pyarrow.MapArray):
        return _decoded_bytes(array.keys) + _decoded_bytes(array.items)
    size: int = array.nbytes
    return size


def _has_lengths(kind: Any) -> bool:
    import pyarrow

    types = pyarrow.types
    return bool(
        types.is_string(kind)
        or types.is_binary(kind)
        or types.is_large_string(kind)
        or types.is_large_binary(kind)
    )


def _row_values(columns: Sequence[str], values: Sequence[Any], max_bytes: int) -> Fields | str:
    try:
        fields = {column: value.as_py() for column, value in zip(columns, values, strict=True)}
    except UnicodeDecodeError as error:
        return f"not UTF-8 at byte {error.start} of a text; fix the row or leave it out"
    if any(isinstance(value, str) and len(value) > max_bytes for value in fields.values()):
        return too_long(max_bytes)
    return fields


@contextmanager
def _open(path: Path, large: Sequence[str] = ()) -> Iterator[Any]:
    require("pyarrow", f"{path}: a Parquet table")
    import pyarrow
    import pyarrow.parquet

    open_file(path).close()
    try:
        with pyarrow.parquet.ParquetFile(path, read_dictionary=[*large]) as table:
            yield table
    except (pyarrow.ArrowException, OSError) as error:
        raise UserError(f"{path}: not readable as Parquet: {str(error).splitlines()[0]}") from None
