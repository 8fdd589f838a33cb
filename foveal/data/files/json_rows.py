"""The rows of a `.json`: an array of objects, objects one a line, or a single object."""

from collections.abc import Iterator
from typing import Any

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.data.core.fields import Fields
from foveal.data.files.utf8 import AnyPath, open_file

MAX_JSON_BYTES = 1 << 28
"""Bytes of the largest `.json`, which is read as a whole."""
ANNOTATION_KEYS = {"images", "annotations"}
"""The keys of a file of annotations in the format of COCO."""


def read_json_rows(path: AnyPath) -> Iterator[tuple[str, Fields | str]]:
    """Yield the location ("object 7") of each row, and its fields or the reason why it has none.

    Raises: UserError: the file is not JSON, or has no rows.
    """
    for number, row in enumerate(_values(path), 1):
        location = f"object {number}"
        yield location, row if isinstance(row, dict) else 'a JSON object is needed, such as {"text": "..."}'


def _values(path: AnyPath) -> list[Any]:
    text = _read(path)
    try:
        value = parse_json(text)
    except ValueError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            return [parse_json(line) for line in lines]
        except ValueError:
            raise UserError(f"{path}: not JSON: {error}; fix the file") from None
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        raise UserError(f"{path}: JSON without rows; give an array of objects, one for each row")
    if value.keys() >= ANNOTATION_KEYS:
        raise UserError(f"{path}: annotations of pictures in the format of COCO; {_coco_hint(path, value)}")
    tables = [rows for rows in value.values() if isinstance(rows, list) and rows and _are_objects(rows)]
    if len(tables) == 1:
        return tables[0]
    if tables or all(isinstance(column, dict) for column in value.values()):
        raise UserError(
            f"{path}: a JSON object of {len(value):,} keys, not rows; save an array of objects, one for each "
            "row (pandas: orient='records')"
        )
    return [value]


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
        f".caption}}' {path} > metadata.jsonl"
    )


def _read(path: AnyPath) -> str:
    with open_file(path) as file:
        data = file.read(MAX_JSON_BYTES + 1)
    if len(data) > MAX_JSON_BYTES:
        raise UserError(
            f"{path}: more than {MAX_JSON_BYTES >> 20} MiB of JSON; write an object a line: jq -c '.[]' "
            f"{path} > {path.name}l"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
