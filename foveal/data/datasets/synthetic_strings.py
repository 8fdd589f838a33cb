"""Computed data sets: strings to copy and to reverse, and the commands of SCAN.

The data sets are the same on every machine, since only `random()` of Python's generator is used, whose
numbers are the same in all versions.
"""

from collections.abc import Callable, Iterable
from random import Random

Pair = tuple[str, str]
PairsBySplit = dict[str, list[Pair]]

ALPHABET = "abcdefghij"
MAX_TRAIN_LETTERS = 200
"""Largest number of letters of a training string."""
TEST_LENGTHS = (20, 50, 100, 200, 400, 600, 1000)
"""Numbers of letters of test strings. There are equally many strings of each length."""
STRING_COUNTS = {"train": 50_000, "valid": 500, "test": 50 * len(TEST_LENGTHS)}
SCAN_COUNTS = {"test": 4_182, "valid": 500}
"""A fifth of all commands, and some of the others. The rest is the training split."""


def copy_pairs() -> PairsBySplit:
    """Return pairs of letters, separated by spaces, and the same letters."""
    return _string_pairs(list)


def reverse_pairs() -> PairsBySplit:
    """Return pairs of letters, separated by spaces, and the letters in reverse order."""
    return _string_pairs(reversed)


def _string_pairs(answer: Callable[[list[str]], Iterable[str]]) -> PairsBySplit:
    """Return pairs of random strings and their answers. No string occurs twice.

    There are as many training strings of 10 to 20 letters as of 100 to 200, since the rule is learned from
    short strings first.
    """
    rng = Random(0)
    sources = set()

    def pair(length: int = 0) -> Pair:
        while True:
            count = length or int((MAX_TRAIN_LETTERS + 1) ** rng.random())
            letters = [ALPHABET[int(len(ALPHABET) * rng.random())] for _ in range(count)]
            source = " ".join(letters)
            if source not in sources:
                sources.add(source)
                return source, " ".join(answer(letters))

    splits = {split: [pair() for _ in range(STRING_COUNTS[split])] for split in ("train", "valid")}
    per_length = STRING_COUNTS["test"] // len(TEST_LENGTHS)
    return splits | {"test": [pair(length) for length in TEST_LENGTHS for _ in range(per_length)]}


def scan() -> PairsBySplit:
    """Return SCAN's commands and moves, split at random (Lake and Baroni 2018, experiment 1)."""
    rng = Random(0)
    pairs = sorted(scan_pairs().items(), key=lambda _: rng.random())
    splits, start = {}, 0
    for split, count in SCAN_COUNTS.items():
        splits[split] = pairs[start : start + count]
        start += count
    return {"train": pairs[start:]} | splits


def scan_pairs() -> dict[str, str]:
    """Return all 20,910 commands with their moves, by the grammar of Lake and Baroni (2018, figures 6 and 7).

    A phrase is a verb, alone or after a turn to a side (opposite: after two turns; around: after each of four
    turns). A sentence is a phrase, repeated with `twice` or `thrice`. A command is a sentence, or two
    sentences; the sentence that follows `after` is done first.
    """
    verbs = {verb: [f"I_{verb.upper()}"] for verb in ("walk", "look", "run", "jump")}
    turns = {side: [f"I_TURN_{side.upper()}"] for side in ("left", "right")}
    phrases = dict(verbs)
    for verb, act in {**verbs, "turn": []}.items():
        for side, turn in turns.items():
            phrases[f"{verb} {side}"] = turn + act
            phrases[f"{verb} opposite {side}"] = turn + turn + act
            phrases[f"{verb} around {side}"] = 4 * (turn + act)
    sentences = {
        phrase + times: number * moves
        for phrase, moves in phrases.items()
        for number, times in ((1, ""), (2, " twice"), (3, " thrice"))
    }
    commands = dict(sentences)
    for left, left_moves in sentences.items():
        for right, right_moves in sentences.items():
            commands[f"{left} and {right}"] = left_moves + right_moves
            commands[f"{left} after {right}"] = right_moves + left_moves
    return {command: " ".join(moves) for command, moves in commands.items()}
