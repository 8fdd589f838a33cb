"""Sources that wait for an answer: a text file with one a line, or a column of a table."""

from collections.abc import Iterator
from pathlib import Path

from foveal.core.errors import UserError
from foveal.data.core.rows import Aside, Row, read_rows
from foveal.data.files.aligned import lines_of
from foveal.data.files.tables import SUFFIXES
from foveal.data.text.tokenizers import Ids


def readable(tokens: Ids, longest: int) -> Ids | str:
    """The tokens; or why a model that reads at most so many can't have them."""
    if len(tokens) <= longest:
        return tokens
    return f"{len(tokens)} tokens, and the model reads at most {longest}: cut it"


def read_questions(path: Path, column: str, aside: list[Aside]) -> Iterator[Row]:
    """Each source as the field `source`; one that can't be used is put into the list."""
    if path.suffix.lower() in SUFFIXES:
        for row in read_rows(path, (column,)):
            if isinstance(row, Aside):
                aside.append(row)
            else:
                yield Row(row.place, {"source": row.fields[column].strip()})
        return
    count = 0
    for line in lines_of(path):
        place, text = f"{path}, line {line.number}", line.text.strip()
        if line.why or not text:
            aside.append(Aside(place, line.why or "empty: write a source on every line"))
            continue
        count += 1
        yield Row(place, {"source": text})
    if not count:
        raise UserError(f"{path}: no sources in it: write one a line")
