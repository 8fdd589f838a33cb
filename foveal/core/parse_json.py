"""JSON that anyone may have written: damaged, or nested without end."""

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

WHITE_SPACE = re.compile(r"\s*")
MAX_DEPTH = 100
"""Most lists and objects inside each other. Python's own limit depends on the caller, and is met only when
the value is written again."""


def parse_json(text: str | bytes) -> Any:
    """Return the value of a JSON text. Of a key that an object has twice the last value is read.

    Raises: ValueError: the text is not JSON, or has more than `MAX_DEPTH` levels.
    """
    return _parse(text, None)


def parse_row(text: str | bytes) -> Any:
    """Return the value of a JSON text of the user's data, where a key twice is a column twice.

    Raises: ValueError: as `parse_json` does, or an object has a key twice.
    """
    return _parse(text, _object)


def _parse(text: str | bytes, make_object: Callable[[list[tuple[str, Any]]], dict[str, Any]] | None) -> Any:
    too_deep = ValueError(f"more than {MAX_DEPTH} lists and objects inside each other")
    try:
        value = json.loads(text, object_pairs_hook=make_object)
    except RecursionError:
        raise too_deep from None
    level = _containers([value])
    for _ in range(MAX_DEPTH):
        level = [inner for container in level for inner in _containers(container)]
        if not level:
            return value
    raise too_deep


def parse_rows(text: str) -> list[Any]:
    """Return the values of a text of JSON values one after another, with or without lines between them.

    Raises: ValueError: as `parse_row` does.
    """
    decoder, values, start = json.JSONDecoder(), list[Any](), 0
    text = text.strip()
    while start < len(text):
        try:
            _, end = decoder.raw_decode(text, start)
        except RecursionError:
            end = len(text)
        values.append(parse_row(text[start:end]))
        space = WHITE_SPACE.match(text, end)
        start = space.end() if space else end
    return values


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the key '{twice}' is there twice in an object")
    return value


def _containers(container: Any) -> list[Any]:
    values = container.values() if type(container) is dict else container
    return [value for value in values if type(value) in (dict, list)]
