"""The rows of a `.json`: an array of objects, objects one after another, an object of columns, or a single
object."""

import json
from collections.abc import Iterator
from shlex import quote
from typing import Any

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_row, parse_rows
from foveal.data.core.fields import Fields
from foveal.data.files.encodings import encoding_hint
from foveal.data.files.utf8 import AnyPath, open_file, utf16_encoding

MAX_JSON_BYTES = 1 << 28
"""Bytes of the largest `.json`, which is read as a whole."""
ANNOTATION_KEYS = {"images", "annotations"}
"""The keys of a file of annotations in the format of COCO."""
ROW_LISTS = {"tokens", "values"}
"""Keys of a single row whose value is a list, so that an object with them is no table of columns."""
MAX_ROW_KEYS = 20
"""Keys of a single object that is a row. An object with more keys than that maps texts to labels."""
UNFINISHED_JSON = ("[", "{", "[{")
"""The first lines of JSON whose objects take several lines."""


def read_json_rows(path: AnyPath, encoding: str = "") -> Iterator[tuple[str, Fields | str]]:
    """Yield the location ("object 7") of each row, and its fields or the reason why it has none.

    A file that is not UTF-8 is decoded by `encoding`.

    Raises: UserError: the file is not JSON, or has no rows.
    """
    for number, row in enumerate(_values(path, encoding), 1):
        yield f"object {number}", row if isinstance(row, dict) else describe_no_object(row)


def describe_no_object(value: Any) -> str:
    """Return the reason why a JSON value that is no object is no row."""
    example = 'a JSON object is needed, such as {"text": "...", "label": "..."}'
    if isinstance(value, list):
        return f"a list without names of columns; {example}"
    return f"{'null' if value is None else type(value).__name__}, not a row; {example}"


def _values(path: AnyPath, encoding: str) -> list[Any]:
    text = read_json_text(path, encoding)
    try:
        value = parse_row(text)
    except ValueError as error:
        try:
            return parse_rows(text)
        except ValueError:
            raise UserError(f"{path}: not JSON: {error}; fix the file") from None
    if isinstance(value, list):
        if not value:
            raise UserError(f"{path}: an empty list; give objects, one for each row")
        return value
    if not isinstance(value, dict):
        raise UserError(f"{path}: JSON without rows; give an array of objects, one for each row")
    if value.keys() >= ANNOTATION_KEYS:
        raise UserError(f"{path}: annotations of pictures in the format of COCO; {_coco_hint(path, value)}")
    tables = {
        key: rows for key, rows in value.items() if isinstance(rows, list) and rows and _are_objects(rows)
    }
    if len(tables) == 1:
        return next(iter(tables.values()))
    if tables:
        first = next(iter(tables))
        raise UserError(
            f"{path}: {len(tables)} lists of rows ({', '.join(tables)}); write each to a file of its own, as "
            f"with: jq {quote(f'.[{json.dumps(first)}]')} {quote(str(path))} > {quote(f'{first}.json')}"
        )
    return _rows_of_columns(value) or [_single_row(path, value)]


def _rows_of_columns(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of an object of columns: lists of equal length, or objects with the same row numbers as
    keys (as pandas writes them). Empty if the object is none."""
    columns = [*value.values()]
    if len(columns) < 2 or ROW_LISTS & value.keys():
        return []
    if all(isinstance(column, dict) for column in columns):
        keys = columns[0].keys()
        if not all(column.keys() == keys for column in columns) or not all(map(str.isdecimal, keys)):
            return []
        columns = [[column[key] for key in keys] for column in columns]
    if not all(isinstance(column, list) and len(column) == len(columns[0]) for column in columns):
        return []
    return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]


def _single_row(path: AnyPath, value: dict[str, Any]) -> dict[str, Any]:
    """Return an object as a row.

    Raises: UserError: the object looks like many rows.
    """
    columns = [*value.values()]
    lengths = {key: len(column) for key, column in value.items() if isinstance(column, list)}
    if len(lengths) == len(columns) > 1 and len({*lengths.values()}) > 1 and not ROW_LISTS & value.keys():
        counts = ", ".join(f"{length:,} in '{key}'" for key, length in lengths.items())
        raise UserError(f"{path}: columns of different lengths ({counts}); give each row a value in each")
    if len(columns) > MAX_ROW_KEYS or all(isinstance(column, dict) for column in columns):
        raise UserError(
            f"{path}: a JSON object of {len(value):,} keys, not rows; save an array of objects, one for each "
            "row (pandas: orient='records')"
        )
    return value


def _are_objects(rows: list[Any]) -> bool:
    return all(isinstance(row, dict) for row in rows)


def _coco_hint(path: AnyPath, value: dict[str, Any]) -> str:
    """Say how to make a metadata table of annotations with captions."""
    rows = value["annotations"]
    if not isinstance(rows, list) or not any(isinstance(row, dict) and "caption" in row for row in rows[:1]):
        return "pictures with boxes are not learned; give metadata.jsonl with file_name and label"
    return (
        "write a table of the captions beside the pictures: jq -c '(.images | map({(.id | tostring): "
        ".file_name}) | add) as $names | .annotations[] | {file_name: $names[.image_id | tostring], text: "
        f".caption}}' {quote(str(path))} > metadata.jsonl"
    )


def read_json_text(path: AnyPath, encoding: str) -> str:
    """Return the text of a JSON file.

    Raises: UserError: the file is too large, or is neither UTF-8 nor in `encoding`.
    """
    with open_file(path) as file:
        data = file.read(MAX_JSON_BYTES + 1)
    if len(data) > MAX_JSON_BYTES:
        raise UserError(
            f"{path}: more than {MAX_JSON_BYTES >> 20} MiB of JSON; write an object a line: jq -c '.[]' "
            f"{quote(str(path))} > {quote(f'{path.name}l')}"
        )
    try:
        return data.decode(utf16_encoding(data) or "utf-8-sig")
    except UnicodeDecodeError as error:
        if not encoding:
            raise UserError(f"{path}: not UTF-8 at byte {error.start}; {encoding_hint(data)}") from None
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: neither UTF-8 nor {encoding} at byte {error.start}; name another data.encoding"
        ) from None
