"""Computed rows ask for what stands before, at distances that grow with the position."""

import hashlib
from collections import Counter

import pytest

from foveal.data.datasets.memory_strings import (
    COPY_LENGTHS,
    NOTHING_ASKED,
    RECALL_LENGTHS,
    ROW_COUNTS,
    copy_rows,
    recall_rows,
)
from foveal.data.datasets.synthetic_strings import PairsBySplit


@pytest.fixture(scope="module")
def recall() -> PairsBySplit:
    return recall_rows()


@pytest.fixture(scope="module")
def copies() -> PairsBySplit:
    return copy_rows()


def tagged(row: tuple[str, str]) -> list[tuple[str, str]]:
    return [*zip(*(column.split() for column in row), strict=True)]


def test_keys_ask_for_their_values(recall):
    for row in (row for rows in recall.values() for row in rows):
        values: dict[str, str] = {}
        for word, tag in tagged(row):
            key, _, value = word.partition("=")
            assert tag == (NOTHING_ASKED if value else values[key])
            assert not (value and key in values)
            if value:
                values[key] = value


def test_words_ask_for_the_digit_so_many_words_before(copies):
    for row in (row for rows in copies.values() for row in rows):
        words = tagged(row)
        for place, (word, tag) in enumerate(words):
            assert tag == (words[place + int(word)][0] if int(word) < 0 else NOTHING_ASKED)


@pytest.mark.parametrize(("name", "lengths"), [("recall", RECALL_LENGTHS), ("copies", COPY_LENGTHS)])
def test_distances_double_with_the_ranges_of_positions(name, lengths, request):
    rows = [tagged(row) for row in request.getfixturevalue(name)["test"]]
    for length in lengths[1:]:
        distances = []
        for row in rows:
            problem = row[length : 2 * length]
            places = {word[0]: place for place, (word, _) in enumerate(problem) if "=" in word}
            asked = [place for place, (_, tag) in enumerate(problem) if tag != NOTHING_ASKED]
            distances += [place - places.get(problem[place][0], place - length // 2) for place in asked]
        assert sum(distances) / len(distances) == pytest.approx(length / 2, rel=0.01)


@pytest.mark.parametrize(("name", "lengths"), [("recall", RECALL_LENGTHS), ("copies", COPY_LENGTHS)])
def test_most_training_rows_are_short_and_each_length_has_as_many_words(name, lengths, request):
    rows = request.getfixturevalue(name)
    assert {split: len(rows[split]) for split in rows} == ROW_COUNTS
    words = {split: Counter(len(row[0].split()) for row in rows[split]) for split in rows}
    assert words["test"] == {sum(lengths): ROW_COUNTS["test"]}
    assert {length * count for length, count in words["train"].items()} <= {64_000, 128_000}
    assert min(words["train"]) == 8


def test_values_are_equally_likely(recall, copies):
    for rows in (recall, copies):
        tags = Counter(tag for row in rows["train"] for tag in row[1].split() if tag != NOTHING_ASKED)
        assert len(tags) == 4
        assert max(tags.values()) / min(tags.values()) < 1.05


def test_the_same_on_every_machine(recall, copies):
    """Not what they ought to be, but what runs and figures of others are based on."""
    contents = [hashlib.sha256(repr(rows).encode()).hexdigest()[:16] for rows in (recall, copies)]
    assert contents == ["a026d313ded85db3", "7d434f3f36509be4"]
