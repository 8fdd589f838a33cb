"""Questions about images from folders and zips with a table, or from tables. Each image is stored once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_row
from foveal.data.core.fields import Fields, as_texts, text_error
from foveal.data.core.rows import Row, SkippedRow, validate_rows
from foveal.data.files.data_part import METADATA_FILES, DataPart
from foveal.data.files.folders import FILE_FIELD, read_folder
from foveal.data.images.image_arrays import image_column, image_fields, read_shards
from foveal.data.images.image_files import unlisted_images, with_names
from foveal.data.images.image_rows import load_row_images
from foveal.tasks.vqa.data_settings import VQADataConfig

FieldReader = Callable[[Fields], Fields | str]


def read_question_rows(
    part: DataPart, requested: Sequence[str], config: VQADataConfig, skipped: list[SkippedRow]
) -> Iterator[Row]:
    """Read questions with their images. Rows that can't be used are added to `skipped`.

    Fields: `picture` (H, W, C), the same array for equal images; its `content`, a sha256; the `name` of its
    file; those of `question`, `answer` and `choices` that are `requested`; and `history`, if the table has
    it. The config names their columns.

    Raises: UserError: there is no table, or the table lacks a column or can't be read.
    """
    images = image_column(part)
    if part.table is None:
        raise UserError(f"{part}: no {' or '.join(METADATA_FILES)} in it with the questions; make one")
    known, columns = part.known_columns(), {field: str(getattr(config, field)) for field in requested}
    for field, column in columns.items():
        if column not in known:
            raise UserError(
                f"{part.table}: no column '{column}' among {', '.join(known)}; give the table this column, "
                f"or train with data.{field}=NAME"
            )
    if config.history != "none" and config.history in known:
        columns["history"] = config.history
    rows = _in_folder(part, columns) if images is None else _in_table(part, str(images), columns)
    return load_row_images(rows, config.image, skipped)


def _in_folder(part: DataPart, columns: Mapping[str, str]) -> Iterator[Row | SkippedRow]:
    for row in read_folder(part, [*columns.values()], _field_reader(columns)):
        if isinstance(row, Row):
            file = row.fields[FILE_FIELD]
            row = Row(row.location, {**row.fields, "image": file, "name": str(file)})
        yield row
    if "answer" in columns:
        yield from unlisted_images(part)


def _in_table(part: DataPart, column: str, columns: Mapping[str, str]) -> Iterator[Row | SkippedRow]:
    read = _field_reader(columns)

    def fields(shard: Path, row: Fields) -> Fields | str:
        image, texts = image_fields(shard, row, column, None, []), read(row)
        return image if isinstance(image, str) else texts if isinstance(texts, str) else texts | image

    records = (
        (location, row if isinstance(row, str) else fields(shard, row))
        for shard, location, row in read_shards(part, [column, *columns.values()])
    )
    return with_names(validate_rows(str(part), records, lambda row: row))


def _field_reader(columns: Mapping[str, str]) -> FieldReader:
    """Return a function from a row of a table to its fields, or to the reason why the row can't be used.

    `columns` maps fields to the names of their columns.
    """

    def read(row: Fields) -> Fields | str:
        try:
            return {field: FIELD_READERS[field](column, row[column]) for field, column in columns.items()}
        except ValueError as error:
            return str(error)

    return read


def _text_field(column: str, value: object) -> str:
    """Return a text as a single line.

    Raises: ValueError: the value can't be used.
    """
    texts = as_texts({column: value})
    if isinstance(texts, str):
        raise ValueError(texts)
    return " ".join(str(texts[column]).split())


def _history_field(column: str, value: object) -> str:
    """Return a history as a single line, which may be empty.

    Raises: ValueError: the value can't be used.
    """
    if error := text_error(column, value):
        raise ValueError(error)
    return " ".join(str(value).split())


def _choices_field(column: str, value: object) -> list[str]:
    """Return choices from a list, a list in JSON, or texts separated by bars.

    Raises: ValueError: the value can't be used.
    """
    choices_list = value
    if isinstance(value, str):
        try:
            choices_list = parse_row(value) if value.lstrip().startswith("[") else value.split("|")
        except ValueError as error:
            raise ValueError(f"'{column}' is not a list: {error}; fix the row") from None
    if not isinstance(choices_list, list):
        raise ValueError(f"'{column}' is not a list of choices, nor texts separated by bars; fix the row")
    choices = [_text_field(column, choice) for choice in choices_list]
    if len({*choices}) < max(2, len(choices)):
        raise ValueError(f"'{column}' needs two choices or more, each once; fix the row")
    return choices


FIELD_READERS: dict[str, Callable[[str, object], Any]] = {
    "question": _text_field,
    "answer": _text_field,
    "choices": _choices_field,
    "history": _history_field,
}
