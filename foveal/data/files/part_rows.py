"""The rows of a part of the data: of its table, or of all its shards."""

from collections.abc import Iterator, Sequence

from foveal.data.core.rows import Row, SkippedRow
from foveal.data.files.data_part import DataPart
from foveal.data.files.tables import read_rows


def read_part_rows(part: DataPart, columns: Sequence[str]) -> Iterator[Row | SkippedRow]:
    """Read the `columns` of each row as texts.

    Raises: UserError: a file is missing, damaged or not a table, lacks a column, or has no row that can be
        used.
    """
    for file in part.files:
        yield from read_rows(file, columns, part.encoding)
