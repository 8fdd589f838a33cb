"""Where questions about images are: folders and zips with a table, or tables. Each image is kept once."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, as_texts, no_text
from foveal.data.core.rows import Aside, Row, checked
from foveal.data.files.folders import FILE, TABLES, open_folder, read_folder
from foveal.data.files.tables import columns_of, read_records
from foveal.data.images.image_arrays import picture_column, picture_fields
from foveal.data.images.image_files import named, table_of, unnamed_pictures
from foveal.data.images.image_rows import decoded

Texts = Callable[[Fields], Fields | str]


def read_asked(data: str, wanted: Sequence[str], config: DataConfig, aside: list[Aside]) -> Iterator[Row]:
    """The questions at a path with their images; those that can't be used are put into the list.

    Fields: `picture` (H, W, C), one and the same for equal images; its `content`, a sha256; the `name` of its
    file; of `question`, `answer` and `choices` those that are `wanted`; `history`, if the table has it. What
    their columns are called, the config says. Errors: UserError for what concerns all of it.
    """
    path = Path(data)
    pictures = picture_column(path)
    table = table_of(open_folder(data)) if pictures is None else path
    if table is None:
        raise UserError(f"{data}: no {' or '.join(TABLES)} in it, which say the questions; make one")
    known, columns = columns_of(table), {field: str(getattr(config, field)) for field in wanted}
    for field, column in columns.items():
        if column not in known:
            raise UserError(f"{table}: no column '{column}' among {', '.join(known)}; set data.{field}=NAME")
    if config.history != "none" and config.history in known:
        columns["history"] = config.history
    rows = _in_folder(data, columns) if pictures is None else _in_table(path, pictures, columns)
    return decoded(rows, config.image, aside)


def _in_folder(data: str, columns: Mapping[str, str]) -> Iterator[Row | Aside]:
    folder = open_folder(data)
    for row in read_folder(folder, [*columns.values()], _reader(columns)):
        if isinstance(row, Row):
            file = row.fields[FILE]
            row = Row(row.place, {**row.fields, "image": file, "name": str(file)})
        yield row
    if "answer" in columns:
        yield from unnamed_pictures(folder)


def _in_table(path: Path, column: str, columns: Mapping[str, str]) -> Iterator[Row | Aside]:
    read = _reader(columns)

    def asked(row: Fields) -> Fields | str:
        picture, found = picture_fields(path, row, column, None, []), read(row)
        return picture if isinstance(picture, str) else found if isinstance(found, str) else found | picture

    return named(checked(str(path), read_records(path, [column, *columns.values()]), asked))


def _reader(columns: Mapping[str, str]) -> Texts:
    """A function from a row of a table to its fields, by the names of their columns; or to why it can't be
    used."""

    def read(row: Fields) -> Fields | str:
        try:
            return {field: READERS[field](column, row[column]) for field, column in columns.items()}
        except ValueError as error:
            return str(error)

    return read


def _text(column: str, value: object) -> str:
    """In one line. Errors, of all three: ValueError says why it can't be used."""
    texts = as_texts({column: value})
    if isinstance(texts, str):
        raise ValueError(texts)
    return " ".join(str(texts[column]).split())


def _said(column: str, value: object) -> str:
    """What was said before, perhaps nothing."""
    if why := no_text(column, value):
        raise ValueError(why)
    return " ".join(str(value).split())


def _choices(column: str, value: object) -> list[str]:
    """A list, one in JSON, or texts with bars between them."""
    listed = value
    if isinstance(value, str):
        try:
            listed = json.loads(value) if value.lstrip().startswith("[") else value.split("|")
        except (ValueError, RecursionError) as error:
            raise ValueError(f"'{column}' is no list: {error}; mend the row") from None
    if not isinstance(listed, list):
        raise ValueError(f"'{column}' is no list of choices, nor texts with bars between them; mend the row")
    choices = [_text(column, choice) for choice in listed]
    if len({*choices}) < max(2, len(choices)):
        raise ValueError(f"'{column}' needs two choices or more, each once; mend the row")
    return choices


READERS: dict[str, Callable[[str, object], Any]] = {
    "question": _text,
    "answer": _text,
    "choices": _choices,
    "history": _said,
}
