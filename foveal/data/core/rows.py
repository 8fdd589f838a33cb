"""Rows of text with what belongs to them: a translation, a label, a tag for each word.

A row that can't be used neither stops the reading nor is lost: it is skipped with the reason, so that
used + skipped = rows in.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, Record

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """`location` as in "train.csv, line 7"; `fields` are texts, or lists of texts: words and their tags."""

    location: str
    fields: Fields
    key: str = ""
    """What decides the row's split: rows of equal keys are in one. Empty until a source has named it."""


@dataclass(frozen=True)
class SkippedRow:
    """A row that can't be used, why, and how to mend it."""

    location: str
    reason: str


def text_key(text: str) -> str:
    """Return the key of a text: its words, whatever the spaces between them are."""
    return " ".join(text.split())


def encode_or_skip(
    rows: Iterable[Row], encode: Callable[[Row], T | str], skipped: list[SkippedRow]
) -> tuple[list[Row], list[T]]:
    """The rows that a model can use, and what `encode` makes of each; where it says why not, the row is put
    into the list."""
    kept, found = list[Row](), list[T]()
    for row in rows:
        one = encode(row)
        if isinstance(one, str):
            skipped.append(SkippedRow(row.location, one))
        else:
            kept.append(row)
            found.append(one)
    return kept, found


def validate_rows(
    name: str, records: Iterable[Record], check: Callable[[Fields], Fields | str]
) -> Iterator[Row | SkippedRow]:
    """The `records` of the file `name`: rows where `check` gives fields, skipped where it says why not.

    Errors: UserError if there is no row, and why the first could not be used.
    """
    used, first = False, "; give rows"
    for number, (place, found) in enumerate(records):
        fields = found if isinstance(found, str) else check(found)
        if isinstance(fields, str):
            first = first if number else f", the first is {place}: {fields}"
            yield SkippedRow(f"{name}, {place}", fields)
        else:
            used = True
            yield Row(f"{name}, {place}", fields)
    if not used:
        raise UserError(f"{name}: no row that can be used{first}")
