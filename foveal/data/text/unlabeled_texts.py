"""Sources that wait for an answer: a text file with one a line, or a column of a table."""

from collections.abc import Iterator

from foveal.core.errors import UserError
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.files.aligned import read_lines
from foveal.data.files.data_part import DataPart
from foveal.data.files.tables import TABLE_SUFFIXES, read_rows
from foveal.data.text.tokenizers import TokenIds


def check_length(tokens: TokenIds, max_length: int) -> TokenIds | str:
    """The tokens; or why a model that reads at most so many can't have them."""
    if len(tokens) <= max_length:
        return tokens
    return f"{len(tokens)} tokens, and the model reads at most {max_length}: cut it"


def read_unlabeled(part: DataPart, column: str, skipped: list[SkippedRow]) -> Iterator[Row]:
    """Each source as the field `source`; one that can't be used is put into the list."""
    path = part.path
    if part.suffix in TABLE_SUFFIXES:
        for row in read_rows(path, (column,)):
            if isinstance(row, SkippedRow):
                skipped.append(row)
            else:
                yield Row(row.location, {"source": row.fields[column].strip()})
        return
    count = 0
    for line in read_lines(path):
        place, text = f"{path}, line {line.number}", line.text.strip()
        if line.reason or not text:
            skipped.append(SkippedRow(place, line.reason or "empty: write a source on every line"))
            continue
        count += 1
        yield Row(place, {"source": text})
    if not count:
        raise UserError(f"{path}: no sources in it: write one a line")
