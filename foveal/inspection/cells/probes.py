"""The probe library: what a unit may follow in a text, as one number for each character.

Each probe says what is known once a character has been read, so that a unit's value after it can be compared.
"""

import re
from collections.abc import Callable, Iterator
from itertools import groupby

import numpy as np
from jaxtyping import Float

from foveal.core.errors import UserError

Labels = Float[np.ndarray, " N"]
Probe = Callable[[str], Labels]

STRING = r"'''.*?'''|\"\"\".*?\"\"\"|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\""
"""A string of Python, with three quotes or one; other languages share those with one."""
COMMENT = r"#[^\n]*|//[^\n]*|/\*.*?\*/"


def line_position(text: str) -> Labels:
    """Return the characters of the line so far; a line break has 0."""
    return _since(text, "\n")


def line_remaining(text: str) -> Labels:
    """Return how many characters of the line are still to come."""
    return _since(text[::-1], "\n")[::-1]


def sentence_position(text: str) -> Labels:
    """Return the characters since the last full stop, question mark or exclamation mark."""
    return _since(text, ".!?")


def word_position(text: str) -> Labels:
    """Return the letters of the word so far; other characters have 0."""
    counts = (range(1, length + 1) if is_letter else [0] * length for is_letter, length in _runs(text))
    return _labels(number for run in counts for number in run)


def indentation(text: str) -> Labels:
    """Return the leading white space of the line; blank lines keep that of the line before."""
    labels, width = list[int](), 0
    for line in text.splitlines(keepends=True):
        stripped = line.lstrip(" \t")
        width = len(line) - len(stripped) if stripped.strip() else width
        labels += [width] * len(line)
    return _labels(labels)


def bracket_depth(text: str) -> Labels:
    """Return how many brackets are open. A blank line closes all, so that one mistake does not last."""
    labels, depth, before = list[int](), 0, ""
    for letter in text:
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth = max(0, depth - 1)
        elif letter == before == "\n":
            depth = 0
        labels.append(depth)
        before = letter
    return _labels(labels)


def quotes(text: str) -> Labels:
    """Return 1 between double quotes, with the opening one. A blank line closes a quote."""
    labels, is_open, before = list[bool](), False, ""
    for letter in text:
        if letter == '"':
            is_open = not is_open
        elif letter in "“”":
            is_open = letter == "“"
        elif letter == before == "\n":
            is_open = False
        labels.append(is_open)
        before = letter
    return _labels(labels)


def letters(kind: Callable[[str], bool]) -> Probe:
    """Return the probe that is 1 at characters of a kind."""
    return lambda text: _labels(map(kind, text))


def matches(pattern: str) -> Probe:
    """Return the probe that is 1 inside the matches of a pattern; inside its first group, if it has one."""
    compiled = re.compile(pattern, re.MULTILINE | re.DOTALL)

    def inside(text: str) -> Labels:
        labels = np.zeros(len(text))
        for match in compiled.finditer(text):
            start, end = match.span(1 if compiled.groups else 0)
            labels[max(0, start) : max(0, end)] = 1
        return labels

    return inside


MEMORY_PROBES: dict[str, Probe] = {
    "position in line": line_position,
    "characters to the line's end": line_remaining,
    "position in sentence": sentence_position,
    "position in word": word_position,
    "indentation": indentation,
    "bracket depth": bracket_depth,
    "quotes": quotes,
    "quote or comment": matches(f"{STRING}|{COMMENT}"),
    "comment": matches(f"(?:{STRING})|({COMMENT})"),
    "if statement": matches(r"\b(?:el)?if\b[^\n:{]*"),
    "line that ends in a colon": matches(r"^[^\n]*:$"),
    "markup": matches(r"<[^<>\n]*>|\[\[[^\]\n]*\]\]"),
    "word in capitals": matches(r"\b[A-Z]{2,}\b"),
}
"""The probes that need more than the last character."""
PROBES = MEMORY_PROBES | {
    "capital letter": letters(str.isupper),
    "digit": letters(str.isdigit),
    "vowel": letters(lambda letter: letter.lower() in "aeiou"),
    "punctuation": letters(lambda letter: letter in ".,;:!?"),
    "white space": letters(str.isspace),
    "line break": letters(lambda letter: letter == "\n"),
}
"""All probes by name, in the order of the table."""


def choose_probes(name: str | None) -> dict[str, Probe]:
    """Return the probe with a name; a regular expression between slashes; or all probes without a name.

    Raises: UserError: there is no such probe, or the expression is wrong.
    """
    if name is None:
        return PROBES
    if len(name) > 2 and name.startswith("/") and name.endswith("/"):
        try:
            return {name: matches(name[1:-1])}
        except re.error as error:
            raise UserError(f"--find {name}: no regular expression: {error}") from None
    if name not in PROBES:
        raise UserError(
            f"--find {name}: there is no such probe; use a regular expression such as '/[0-9]+/', or one of: "
            f"{', '.join(PROBES)}"
        )
    return {name: PROBES[name]}


def _since(text: str, marks: str) -> Labels:
    """Return how many characters ago the last of the marks was; 0 at a mark."""
    positions = np.arange(len(text))
    is_mark = np.isin(np.array(list(text), dtype="<U1"), list(marks))
    return (positions - np.maximum.accumulate(np.where(is_mark, positions, -1))).astype(np.float64)


def _runs(text: str) -> Iterator[tuple[bool, int]]:
    for is_letter, run in groupby(text, str.isalnum):
        yield is_letter, sum(1 for _ in run)


def _labels(values: Iterator[int] | list[int] | list[bool]) -> Labels:
    return np.array([*values], dtype=np.float64)
