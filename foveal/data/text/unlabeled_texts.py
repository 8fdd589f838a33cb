"""Sources to be predicted: the lines of a text file, or a column of a table."""

from collections.abc import Iterator

from foveal.core.errors import UserError
from foveal.data.core.rows import Row, SkippedRow, usable_rows
from foveal.data.files.aligned import read_lines
from foveal.data.files.data_part import DataPart
from foveal.data.files.part_rows import read_part_rows
from foveal.data.files.tables import TABLE_SUFFIXES
from foveal.data.text.text_folders import read_texts
from foveal.data.text.tokenizers import TokenIds


def check_length(tokens: TokenIds, max_length: int) -> TokenIds | str:
    """Return the tokens, or a reason if there are too many for the model."""
    if len(tokens) <= max_length:
        return tokens
    return f"{len(tokens)} tokens, and the model reads at most {max_length}: cut it"


def read_unlabeled_texts(part: DataPart, column: str, skipped: list[SkippedRow]) -> Iterator[Row]:
    """Read sources as the field `source`: the rows of a table, the lines of a file, or the files of a folder.

    Sources that can't be used are added to `skipped`.

    Raises: UserError: the file can't be read, or has no sources.
    """
    path = part.path
    if part.is_folder:
        yield from read_texts(part, skipped)
        return
    if part.suffix in TABLE_SUFFIXES:
        for row in usable_rows(read_part_rows(part, (column,)), skipped):
            yield Row(row.location, {"source": row.fields[column].strip()})
        return
    count, first = 0, ""
    for line in read_lines(path, part.encoding):
        location, text = f"{path}, line {line.number}", line.text.strip()
        if line.reason or not text:
            skipped.append(SkippedRow(location, line.reason or "empty: write a source on every line"))
            first = first or f"; the first, {location}: {skipped[-1].reason}"
            continue
        count += 1
        yield Row(location, {"source": text})
    if not count:
        raise UserError(f"{path}: no sources in it: write a source on every line{first}")
