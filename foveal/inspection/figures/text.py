"""Text in pictures: names of data, files and labels may hold any character."""

import re
import textwrap

from foveal.core.terminal_text import escape_controls
from foveal.inspection.style import cut_text

NO_CHARACTERS = re.compile("[\ufdd0-\ufdef\ufffe\uffff]")
"""Code points that are no characters: no XML file may hold them."""
MAX_NAME_LENGTH = 24
"""Letters of a label at an axis; longer labels are cut."""


def drawable(text: str, max_length: int | None = None) -> str:
    """Return a text in a single line that every file format can hold, at most `max_length` letters."""
    line = NO_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", escape_controls(" ".join(text.split())))
    return line if max_length is None else cut_text(line, max_length)


def wrapped(text: str, max_length: int) -> list[str]:
    """Return the lines of a text, each with at most `max_length` letters."""
    return textwrap.wrap(drawable(text), max(8, max_length))
