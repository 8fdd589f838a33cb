"""Train, validation and test parts of rows, cut without leakage and by content alone.

Rows go to a part by the hash of their content: equal ones fall on the same side, and neither names nor order
matter.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from foveal.core.errors import UserError
from foveal.data.core.rows import Row

SplitName = str
SPLITS: tuple[SplitName, ...] = ("train", "valid", "test")
Fractions = Mapping[SplitName, float]
"""The shares of the held-out parts, each above zero; the rest is `train`."""


def split_rows(rows: Iterable[Row], fractions: Fractions) -> Iterator[tuple[SplitName, Row]]:
    """Yield each row with its split, which its key decides: rows of equal keys are in one split."""
    check_fractions(fractions)
    for row in rows:
        if not row.key:
            raise ValueError(f"{row.location}: without a key, so nothing decides its split")
        yield split_of_text(row.key, fractions), row


def count_overlap(train: Iterable[Row], test: Iterable[Row]) -> int:
    """Return how many rows of `test` have a key that a row of `train` has too."""
    seen = {row.key for row in train}
    return sum(row.key in seen for row in test)


def split_of_text(text: str, fractions: Fractions) -> SplitName:
    """The part of a row: its hash as a number in [0, 1), held against the shares."""
    place = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64
    for part, share in fractions.items():
        if place < share:
            return part
        place -= share
    return "train"


def check_fractions(fractions: Fractions) -> None:
    """Raise UserError if they leave nothing to train on."""
    if sum(fractions.values()) >= 1:
        raise UserError(
            f"{' + '.join(f'data.{part}_fraction={share}' for part, share in fractions.items())} "
            "leaves nothing to train on; the shares must add up to less than 1"
        )
