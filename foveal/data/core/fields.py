"""What the fields of a row have to be: texts, or words and their tags."""

import json
from collections.abc import Iterable
from typing import Any

Fields = dict[str, Any]
Record = tuple[str, Fields | str]
"""Where in a file ("line 7"), and the fields there, or why they can't be used and how to mend that."""


def text_error(name: str, value: object) -> str:
    """Why the field `name` is no text; empty if it is."""
    if not isinstance(value, str):
        return f"'{name}' is {_type_name(value)}, not text; mend the row or leave it out"
    if "\0" in value:
        return f"'{name}' holds a NUL, so it is not text; mend the row"
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return f"'{name}' holds half a surrogate pair ({value[error.start]!r}); mend the row"
    return ""


def as_texts(fields: Fields) -> Fields | str:
    """All fields as texts, numbers as JSON writes them; or why one of them is none, or blank."""
    texts = {name: _number_as_json(value) for name, value in fields.items()}
    return _first_error(texts.items()) or texts


def as_words(fields: Fields) -> Fields | str:
    """The first field as "tokens", the second (if any) as "tags": lists of texts, as many as one another.

    A text is taken as its words, between spaces. Or why they are not such lists.
    """
    lists: Fields = {}
    for kind, (name, value) in zip(("tokens", "tags"), fields.items(), strict=False):
        if not isinstance(value, str | list):
            return f"'{name}' is {_type_name(value)}, not a list of texts; mend the row or leave it out"
        lists[kind] = [_number_as_json(word) for word in (value.split() if isinstance(value, str) else value)]
    counts = [len(words) for words in lists.values()]
    if len(set(counts)) > 1:
        return f"{counts[0]} words but {counts[1]} tags; mend the row so that each word has one tag"
    if not counts[0]:
        return "no words; fill them in or leave the row out"
    return (
        _first_error(
            (name, word) for name, words in zip(fields, lists.values(), strict=False) for word in words
        )
        or lists
    )


def _number_as_json(value: object) -> object:
    """A number as JSON writes it, since labels often are numbers; anything else as it is."""
    return json.dumps(value) if isinstance(value, int | float) and value == value else value


def _first_error(texts: Iterable[tuple[str, object]]) -> str:
    """What is wrong with the first of the named texts that can't be used."""
    for name, text in texts:
        if why := text_error(name, text):
            return why
        if not str(text).strip():
            return f"'{name}' is empty; fill it in or leave the row out"
    return ""


def _type_name(value: object) -> str:
    return "null" if value is None or value != value else type(value).__name__
