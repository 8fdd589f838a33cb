"""Computed data sets of memory at distance: values to recall by their keys, and digits to copy after a delay.

The words from L + 1 to 2 L of a row are a problem of its own, for L = 4, 8, 16 ...: what is asked stands
L / 2 words before on average. So the loss by position (docs/compare.md) is the loss by distance. Words that
ask nothing have the tag `-`.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from string import ascii_lowercase

from foveal.data.datasets.synthetic_strings import PairsBySplit

RECALL_LENGTHS = (4, 4, 8, 16, 32)
COPY_LENGTHS = (*RECALL_LENGTHS, 64)
"""Numbers of words of the problems of a row."""
MIN_PROBLEMS = 2
KEYS = ascii_lowercase[: sum(RECALL_LENGTHS) // 4]
"""The keys. Each occurs in one problem of a row."""
DIGITS = "0123"
"""The values. They are equally likely, so not to know them costs ln 4 = 1.386 nats."""
ROW_COUNTS = {"train": 16_000, "valid": 64, "test": 256}
NOTHING_ASKED = "-"
Tagged = Iterator[tuple[str, str]]
"""Words with their tags."""


def recall_rows() -> PairsBySplit:
    """Return rows of keys with their values and keys that ask for them: associative recall (Ba et al. 2016,
    section 4.1) with many queries (Arora et al. 2023)."""
    rng = Random(0)
    return _splits(lambda count: _recall(RECALL_LENGTHS[:count], rng), len(RECALL_LENGTHS))


def copy_rows() -> PairsBySplit:
    """Return rows of digits and words that ask for the digit so many words before: copying after a delay
    (Hochreiter and Schmidhuber 1997; Arjovsky et al. 2016, section 5.1)."""
    rng = Random(0)
    return _splits(lambda count: _copy(COPY_LENGTHS[:count], rng), len(COPY_LENGTHS))


def _recall(lengths: Sequence[int], rng: Random) -> Tagged:
    """Yield problems: a fourth of the words are keys with their values, and then each key comes three
    times."""
    new_keys = iter(_shuffled(KEYS, rng))
    for length in lengths:
        values = {next(new_keys): _digit(rng) for _ in range(length // 4)}
        yield from ((f"{key}={value}", NOTHING_ASKED) for key, value in values.items())
        for _ in range(3):
            yield from ((key, values[key]) for key in _shuffled([*values], rng))


def _copy(lengths: Sequence[int], rng: Random) -> Tagged:
    """Yield problems: half of the words are digits, and then come as many queries."""
    for length in lengths:
        digits = [_digit(rng) for _ in range(length // 2)]
        yield from ((digit, NOTHING_ASKED) for digit in digits)
        yield from ((f"-{length // 2}", digit) for digit in digits)


def _splits(row: Callable[[int], Tagged], most: int) -> PairsBySplit:
    """Return rows of `most` problems. Half of the training rows have only the first two of them, a fourth
    the first three and so on, since the rule is learned from short rows first."""
    problems = {split: [most] * count for split, count in ROW_COUNTS.items()}
    train = range(1, ROW_COUNTS["train"] + 1)
    problems["train"] = [min(most, MIN_PROBLEMS - 1 + (number & -number).bit_length()) for number in train]
    return {split: [_joined(row(count)) for count in counts] for split, counts in problems.items()}


def _joined(tagged: Tagged) -> tuple[str, str]:
    """Return the words of a row, and their tags."""
    words, tags = zip(*tagged, strict=True)
    return " ".join(words), " ".join(tags)


def _shuffled(keys: Sequence[str], rng: Random) -> list[str]:
    """Return the keys in random order. `random()` alone has the same numbers in all versions of Python."""
    return sorted(keys, key=lambda _: rng.random())


def _digit(rng: Random) -> str:
    return DIGITS[int(len(DIGITS) * rng.random())]
