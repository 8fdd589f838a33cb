"""Computed data sets are the same everywhere, and what they say they are."""

import hashlib
import re
from collections.abc import Callable

import pytest

from foveal.data.datasets.synthetic_strings import (
    ALPHABET,
    PairsBySplit,
    copy_pairs,
    reverse_pairs,
    scan,
    scan_pairs,
)


def content(parts: PairsBySplit) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@pytest.mark.parametrize("make", [copy_pairs, reverse_pairs])
def test_strings_are_of_all_lengths_and_each_is_there_once(make: Callable[[], PairsBySplit]) -> None:
    parts = make()
    assert {part: len(pairs) for part, pairs in parts.items()} == {"train": 50_000, "valid": 500, "test": 350}
    sources = [source for pairs in parts.values() for source, _ in pairs]
    assert len(set(sources)) == len(sources)
    for pairs in parts.values():
        for source, target in pairs:
            letters = source.split(" ")
            assert set(letters) <= set(ALPHABET)
            assert target == (source if make is copy_pairs else source[::-1])
    lengths = [len(source.split()) for source, _ in parts["train"]]
    assert (min(lengths), max(lengths)) == (1, 200)
    few, many = (sum(low <= length < 2 * low for length in lengths) for low in (10, 100))
    assert abs(few / many - 1) < 0.05
    tested = [len(source.split()) for source, _ in parts["test"]]
    assert {length: tested.count(length) for length in tested} == dict.fromkeys(
        (20, 50, 100, 200, 400, 600, 1000), 50
    )


def test_the_same_on_every_machine() -> None:
    """Not what they ought to be, but what runs and figures of others are based on."""
    assert [content(copy_pairs()), content(reverse_pairs()), content(scan())] == [
        "906b69c4de24380d",
        "a3fa7bd8f9581b4a",
        "49273abc7586da88",
    ]


KNOWN = {
    "jump": "JUMP",
    "jump left": "LTURN JUMP",
    "jump around right": "RTURN JUMP RTURN JUMP RTURN JUMP RTURN JUMP",
    "turn left twice": "LTURN LTURN",
    "jump thrice": "JUMP JUMP JUMP",
    "jump opposite left and walk thrice": "LTURN LTURN JUMP WALK WALK WALK",
    "jump opposite left after walk around left": (
        "LTURN WALK LTURN WALK LTURN WALK LTURN WALK LTURN LTURN JUMP"
    ),
}
"""The examples of Lake and Baroni (2018, figure 1)."""


def test_scan_has_all_commands_and_the_paper_s_examples() -> None:
    pairs = scan_pairs()
    assert len(pairs) == 20_910
    assert max(len(target.split()) for target in pairs.values()) == 48
    for command, moves in KNOWN.items():
        written = re.sub(r"\b([LR])TURN", lambda turn: {"L": "TURN_LEFT", "R": "TURN_RIGHT"}[turn[1]], moves)
        assert pairs[command] == " ".join(f"I_{move}" for move in written.split())


def interpreted(command: str) -> list[str]:
    """The paper's interpretation function by recursive descent, from the outermost word inwards."""
    for joint in (" and ", " after "):
        if joint in command:
            one, other = map(interpreted, command.split(joint))
            return one + other if joint == " and " else other + one
    words = command.split()
    if words[-1] in ("twice", "thrice"):
        return interpreted(" ".join(words[:-1])) * {"twice": 2, "thrice": 3}[words[-1]]
    act = [] if words[0] == "turn" else [f"I_{words[0].upper()}"]
    if len(words) == 1:
        return act
    turn = [f"I_TURN_{words[-1].upper()}"]
    if words[1] == "around":
        return (turn + act) * 4
    return turn * (2 if words[1] == "opposite" else 1) + act


def test_scan_s_moves_are_those_of_the_interpretation_function() -> None:
    for command, moves in scan_pairs().items():
        assert moves.split() == interpreted(command)


def test_scan_is_split_whole() -> None:
    parts = scan()
    assert {part: len(pairs) for part, pairs in parts.items()} == {
        "train": 16_228,
        "test": 4_182,
        "valid": 500,
    }
    assert sorted(pair for pairs in parts.values() for pair in pairs) == sorted(scan_pairs().items())
