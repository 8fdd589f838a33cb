"""Splits of rows into train, valid and test by content alone, without leakage.

The hash of a row's content decides its split. Equal rows are in the same split. Neither names nor order
matter.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from foveal.core.errors import UserError
from foveal.data.core.rows import Row

SplitName = str
SPLITS: tuple[SplitName, ...] = ("train", "valid", "test")
Fractions = Mapping[SplitName, float]
"""The fraction of each held-out split, above zero; the rest is `train`."""


def split_rows(rows: Iterable[Row], fractions: Fractions) -> Iterator[tuple[SplitName, Row]]:
    """Yield each row with its split, which the hash of the row's key decides. Rows with equal keys are in the
    same split."""
    check_fractions(fractions)
    for row in rows:
        if not row.key:
            raise ValueError(f"{row.location}: without a key, so nothing decides its split")
        yield split_of_text(row.key, fractions), row


def split_of_text(text: str, fractions: Fractions) -> SplitName:
    """Return the split of a text: its hash is a number in [0, 1), which falls into one of the fractions."""
    point = text_hash(text) / 2**64
    for split, fraction in fractions.items():
        if point < fraction:
            return split
        point -= fraction
    return "train"


def text_hash(text: str) -> int:
    """Return the first 64 bits of the sha256 of a text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def check_fractions(fractions: Fractions) -> None:
    """Check that the fractions leave rows to train on.

    Raises: UserError: the fractions add up to 1 or more.
    """
    if sum(fractions.values()) >= 1:
        raise UserError(
            f"{' + '.join(f'data.{split}_fraction={fraction}' for split, fraction in fractions.items())} "
            "leaves nothing to train on; their sum must be below 1"
        )
