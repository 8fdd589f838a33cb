"""Rows of data: a source with its target, such as a translation, a label, a tag for each word.

A row that can't be used does not stop the reading, and is not lost: it is skipped with a reason. So used +
skipped = rows in the file.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from foveal.core.errors import UserError
from foveal.data.core.fields import Fields, Record

T = TypeVar("T")
NOT_UTF8 = "not UTF-8"
"""The start of the reason for a line in another encoding."""
MIN_UNREADABLE, MAX_UNREADABLE = 2, 0.1
"""Rows, and fraction of the rows, that may be in another encoding."""


@dataclass(frozen=True)
class Row:
    """A row. `location` is like "train.csv, line 7". `fields` are texts, or lists of words and of tags."""

    location: str
    fields: Fields
    key: str = ""
    """Decides the row's split: rows with equal keys are in the same split. Empty until a source
    sets the key."""


@dataclass(frozen=True)
class SkippedRow:
    """A row that can't be used. `reason` says why, and how to fix the row."""

    location: str
    reason: str


@dataclass(frozen=True)
class SkippedPart(SkippedRow):
    """A part that can't be used of a row that is used without it, such as a frame of a clip."""

    row: str = ""
    """The location of the row."""


def text_key(text: str) -> str:
    """Return the key of a text: its words with single spaces between them."""
    return " ".join(text.split())


def source_text(row: Row) -> str:
    """Return the source of a row as a text: the text itself, the words of a sentence, or the file."""
    source = row.fields["source"]
    return source if isinstance(source, str) else " ".join(source)


def usable_rows(rows: Iterable[Row | SkippedRow], skipped: list[SkippedRow]) -> Iterator[Row]:
    """Yield the rows that can be used. The other rows are added to `skipped`."""
    for row in rows:
        if isinstance(row, SkippedRow):
            skipped.append(row)
        else:
            yield row


def encode_or_skip(
    rows: Iterable[Row], encode: Callable[[Row], T | str], skipped: list[SkippedRow]
) -> tuple[list[Row], list[T]]:
    """Return the rows that a model can use, and their encoded values.

    Rows for which `encode` returns a reason are added to `skipped`.
    """
    usable, values = list[Row](), list[T]()
    for row in rows:
        value = encode(row)
        if isinstance(value, str):
            skipped.append(SkippedRow(row.location, value))
        else:
            usable.append(row)
            values.append(value)
    return usable, values


def validate_rows(
    name: str, records: Iterable[Record], check: Callable[[Fields], Fields | str]
) -> Iterator[Row | SkippedRow]:
    """Yield the `records` of the file `name` as rows. A record for which `check` returns a reason is a
    skipped row.

    `check` returns the fields of a record, or the reason why the record can't be used.

    Raises: UserError: no row can be used, or many rows are in another encoding than UTF-8. The message gives
        the reason for the first row.
    """
    any_usable, first, count, unreadable = False, "; give rows", 0, list[str]()
    for index, (location, record) in enumerate(records):
        fields = record if isinstance(record, str) else check(record)
        count += 1
        if isinstance(fields, str):
            if fields.startswith(NOT_UTF8):
                unreadable.append(f"{location}: {fields}")
            first = first if index else f", the first is {location}: {fields}"
            yield SkippedRow(f"{name}, {location}", fields)
        else:
            any_usable = True
            yield Row(f"{name}, {location}", fields)
    if not any_usable:
        raise UserError(f"{name}: no usable row{first}")
    if len(unreadable) > max(MIN_UNREADABLE, MAX_UNREADABLE * count):
        rows = f"{len(unreadable):,} of {count:,} rows are not UTF-8"
        raise UserError(f"{name}: {rows}, the first is {unreadable[0]}")
