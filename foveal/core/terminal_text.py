r"""Text for a terminal: characters that a terminal would obey are shown as escapes such as `\x1b`."""

import math
import re

OBEYED_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters without tab and newline
    "\u202a-\u202e\u2066-\u2069"  # the order of characters: a name could look like another one
    "\ud800-\udfff]"  # halves of surrogate pairs, which no encoding has
)
LINE_SIGNS = str.maketrans({"\n": "⏎", "\r": "␍", "\t": "⇥"})
"""Signs for white space that a line can't hold (for `str.translate`)."""
WHITE_SPACE_SIGNS = LINE_SIGNS | str.maketrans({" ": "␣"})
"""Signs for white space, which would not be seen in a cell or at an axis."""


def escape_controls(text: str) -> str:
    """Return a text in which the characters that a terminal obeys are escapes; tabs and newlines stay.

    Labels, names of files, settings and tokenizers can hold any character, so everything that is shown to
    users passes through here (`ui/console.py`).
    """
    return OBEYED_CHARACTERS.sub(lambda match: ascii(match[0])[1:-1], text)


def escape_rare_spaces(text: str) -> str:
    r"""Return a text in which white space that no one sees is an escape such as `\xa0`; spaces, tabs and
    newlines stay."""
    return "".join(
        ascii(letter)[1:-1] if letter.isspace() and letter not in " \t\n" else letter for letter in text
    )


def shorten_middle(text: str, max_length: int) -> str:
    """Return a text of at most about `max_length` characters. Its start and its end stay."""
    half = max_length // 2
    return text if len(text) <= max_length else f"{text[:half]} ... {text[-half:]}"


def counted(count: int, noun: str) -> str:
    """Return a number of things in words, such as `1 row` and `2 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def number_text(value: float) -> str:
    """Return a number in about three digits, such as 0.125, 17 and 3,120."""
    if math.isfinite(value) and (value == 0 or 1e-3 <= abs(value) < 1e12):
        return f"{value:,.0f}" if value == round(value) or abs(value) >= 100 else f"{value:.3g}"
    return f"{value:.3g}"


def decimals(value: float, places: int) -> str:
    """Return a number with some decimals; from a million on in powers of ten, such as 8.43e+18."""
    return f"{value:.3g}" if 1e6 <= abs(value) < math.inf else f"{value:.{places}f}"
