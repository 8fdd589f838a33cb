"""Data sets that are computed: strings to copy and to reverse, and the commands of SCAN.

They are the same on every machine: of Python's generator only `random()` is used, whose numbers stay the same
in all versions.
"""

from collections.abc import Callable, Iterable
from random import Random

Pair = tuple[str, str]
PairsBySplit = dict[str, list[Pair]]

ALPHABET = "abcdefghij"
MAX_TRAIN_LETTERS = 200
"""Letters of a string to train on."""
TEST_LENGTHS = (20, 50, 100, 200, 400, 600, 1000)
"""Letters of the strings of the test, as many of each length."""
STRING_COUNTS = {"train": 50_000, "valid": 500, "test": 50 * len(TEST_LENGTHS)}
SCAN_COUNTS = {"test": 4_182, "valid": 500}
"""A fifth of all commands, and some of the others; the rest is to train on."""


def copy_pairs() -> PairsBySplit:
    """Letters with spaces between them, and the same again."""
    return _string_pairs(list)


def reverse_pairs() -> PairsBySplit:
    """Letters with spaces between them, and the same from the last to the first."""
    return _string_pairs(reversed)


def _string_pairs(answer: Callable[[list[str]], Iterable[str]]) -> PairsBySplit:
    """No string is there twice. To train on there are as many of 10 to 20 letters as of 100 to 200: what is
    to be done is learned from short ones first."""
    chance = Random(0)
    seen = set()

    def pair(length: int = 0) -> Pair:
        while True:
            count = length or int((MAX_TRAIN_LETTERS + 1) ** chance.random())
            letters = [ALPHABET[int(len(ALPHABET) * chance.random())] for _ in range(count)]
            source = " ".join(letters)
            if source not in seen:
                seen.add(source)
                return source, " ".join(answer(letters))

    parts = {part: [pair() for _ in range(STRING_COUNTS[part])] for part in ("train", "valid")}
    each = STRING_COUNTS["test"] // len(TEST_LENGTHS)
    return parts | {"test": [pair(length) for length in TEST_LENGTHS for _ in range(each)]}


def scan() -> PairsBySplit:
    """SCAN's commands and moves, split at random (Lake and Baroni 2018, experiment 1)."""
    chance = Random(0)
    pairs = sorted(scan_pairs().items(), key=lambda _: chance.random())
    parts, start = {}, 0
    for part, count in SCAN_COUNTS.items():
        parts[part] = pairs[start : start + count]
        start += count
    return {"train": pairs[start:]} | parts


def scan_pairs() -> dict[str, str]:
    """All 20,910 commands with their moves, by the grammar of Lake and Baroni (2018, figures 6 and 7).

    A phrase is a verb, alone or behind a turn to a side (opposite: two turns; around: behind each of four);
    a sentence is a phrase, twice or thrice if so said; a command is a sentence, or two, of which the one
    behind `after` is done first.
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
    for one, first in sentences.items():
        for other, second in sentences.items():
            commands[f"{one} and {other}"] = first + second
            commands[f"{one} after {other}"] = second + first
    return {command: " ".join(moves) for command, moves in commands.items()}
