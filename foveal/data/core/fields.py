"""Checks of the fields of a row: texts, or words and their tags."""

import ast
import json
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from foveal.core.parse_json import parse_row

Fields = dict[str, Any]
NUMPY_ITEM = re.compile(r"""'([^']*)'|"([^"]*)"|([-+.\d]+)""")
NUMPY_LIST = re.compile(rf"\[\s*(?:(?:{NUMPY_ITEM.pattern})(?:\s+|(?=\])))+\]")
"""A list as NumPy prints it: without commas, which Python would read as one word."""
ELIDED = "..."
"""What NumPy and pandas print in place of the items in the middle of a long list."""
SHORTENED = f"is a list that was shortened with '{ELIDED}' when it was printed; write the whole list"
Record = tuple[str, Fields | str]
"""A location in a file ("line 7"), and the fields there, or why they can't be used and how to fix that."""


def text_error(name: str, value: object) -> str:
    """Say why the field `name` is not text. Return an empty string if the field is text."""
    if not isinstance(value, str):
        return f"'{name}' is {_type_name(value)}, not text; fix the row or leave it out"
    if "\0" in value:
        return f"'{name}' holds a NUL, so it is not text; fix the row"
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return f"'{name}' holds half a surrogate pair ({value[error.start]!r}); fix the row"
    return ""


def repeated_name_error(names: Sequence[str]) -> str:
    """Say which two columns have the same name. Empty if none have. Columns without names may be several."""
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if name and first.setdefault(name, number) < number:
            return f"the columns {first[name]} and {number} are both named '{name}'; rename one of them"
    return ""


def as_texts(fields: Fields) -> Fields | str:
    """Return all fields as texts, numbers as in JSON; or say which field is empty or not text."""
    if all(type(value) is str and value.isprintable() and value.strip() for value in fields.values()):
        return fields  # as most rows; a printable text has no NUL and no half of a surrogate pair
    texts = {name: _number_as_json(value) for name, value in fields.items()}
    return _first_error(texts.items()) or texts


def as_words(fields: Fields) -> Fields | str:
    """Return the first field as "tokens" and the second, if there is one, as "tags": lists of texts of equal
    length.

    A text is a list as in JSON or Python, or is split into words at spaces. Return a reason if the fields are
    not such lists.
    """
    lists: Fields = {}
    for field, (name, value) in zip(("tokens", "tags"), fields.items(), strict=False):
        if not isinstance(value, str | list):
            return f"'{name}' is {_type_name(value)}, not a list of texts; fix the row or leave it out"
        words = split_words(value) if isinstance(value, str) else value
        if isinstance(words, str):
            return f"'{name}' {words}"
        lists[field] = [_number_as_json(word) for word in words]
    counts = [len(words) for words in lists.values()]
    if len(set(counts)) > 1:
        return f"{counts[0]} words but {counts[1]} tags; fix the row so that each word has one tag"
    if not counts[0]:
        return "no words; fill them in or leave the row out"
    return (
        _first_error(
            (name, word) for name, words in zip(fields, lists.values(), strict=False) for word in words
        )
        or lists
    )


def split_words(text: str) -> list[Any] | str:
    """Return the words of a text: those of a list as in JSON, Python or NumPy, or those between spaces.
    Return a reason if the text only begins like a list."""
    trimmed = text.strip()
    if not (trimmed.startswith("[") and trimmed.endswith("]")):
        return text.split()
    if NUMPY_LIST.fullmatch(trimmed):
        items = NUMPY_ITEM.findall(trimmed[1:-1])
        if len(items) > 1 and ELIDED in (bare for _, _, bare in items):
            return SHORTENED
        return [single or double or bare for single, double, bare in items]
    for parse in (parse_row, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            words = parse(trimmed)
            if isinstance(words, list) and len(words) > 1 and ... in words:
                return SHORTENED
            return words if isinstance(words, list) else text.split()
    if trimmed[1:].lstrip().startswith(("'", '"')):
        return "begins like a list and is none; write it as in JSON, or words with spaces between"
    return text.split()


def _number_as_json(value: object) -> object:
    """Return a number as in JSON, since labels are often numbers. Return other values unchanged."""
    return json.dumps(value) if isinstance(value, int | float) and value == value else value


def _first_error(texts: Iterable[tuple[str, object]]) -> str:
    """Say what is wrong with the first of the named texts that can't be used. Empty if all can be used."""
    for name, text in texts:
        if error := text_error(name, text):
            return error
        if not str(text).strip():
            return f"'{name}' is empty; fill it in or leave the row out"
    return ""


def _type_name(value: object) -> str:
    return "null" if value is None or value != value else type(value).__name__
