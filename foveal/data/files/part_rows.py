"""The rows of a part of the data: of its table, or of all its shards."""

import os
from collections.abc import Iterator, Sequence

from foveal.data.core.rows import Row, SkippedRow
from foveal.data.files.data_part import DataPart
from foveal.data.files.tables import read_rows
from foveal.data.files.utf8 import AnyPath


def shard_name(first: AnyPath, shard: AnyPath) -> str:
    """Return the name of a shard in locations: its path from the folder of the `first` shard."""
    return os.path.relpath(str(shard), os.path.dirname(str(first)) or ".")


def read_part_rows(part: DataPart, columns: Sequence[str]) -> Iterator[Row | SkippedRow]:
    """Read the `columns` of each row as texts.

    Raises: UserError: a file is missing, damaged or not a table, lacks a column, or has no row that can be
        used.
    """
    for file in part.files:
        yield from read_rows(file, columns, part.encoding)
