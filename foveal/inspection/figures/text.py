"""Text in pictures: names of data, files and labels may hold any character."""

import re
import textwrap
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from foveal.core.terminal_text import escape_controls
from foveal.inspection.style import cut_text, text_font

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NO_CHARACTERS = re.compile("[\ufdd0-\ufdef\ufffe\uffff]")
"""Code points that are no characters: no XML file may hold them."""
MAX_NAME_LENGTH = 24
"""Letters of a label at an axis; longer labels are cut."""
TITLE_LETTER, MAX_TITLE_LINES, MAX_AXIS_NAME = 0.075, 2, 40
"""Inches of a letter of a panel's title, lines of it, and letters of the name of an axis."""

TICK_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"))


def drawable(text: str, max_length: int | None = None) -> str:
    """Return a text in a single line that every file format can hold, cut to `max_length` narrow letters."""
    line = NO_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", escape_controls(" ".join(text.split())))
    return line if max_length is None else cut_text(line, _letters(line, max_length))


def wrapped(text: str, max_length: int) -> list[str]:
    """Return the lines of a text, each at most as long as `max_length` narrow letters."""
    line = drawable(text)
    return textwrap.wrap(line, max(8, _letters(line, max_length)))


def write_title(axes: "Axes", text: str, width: float) -> None:
    """Write the title of a panel of a width in inches."""
    lines = wrapped(text, int(width / TITLE_LETTER))[:MAX_TITLE_LINES]
    axes.set_title("\n".join(lines), loc="left", fontproperties=text_font(9.0), parse_math=False)


def write_axis_names(axes: "Axes", x: str, y: str, size: float = 8.0) -> None:
    """Write the names of both axes."""
    look: dict[str, Any] = {"fontproperties": text_font(size), "parse_math": False}
    axes.set_xlabel(drawable(x, MAX_AXIS_NAME), **look)
    axes.set_ylabel(drawable(y, MAX_AXIS_NAME), **look)


def tick_label(value: float | int, position: float | int | None = None) -> str:
    """Return a number at an axis, such as `0.25`, `1e-6`, `13.5 M` or `\N{MINUS SIGN}2.5e-5`."""
    for size, letter in TICK_UNITS:
        if size <= abs(value) < 1e3 * size:
            return f"{tick_label(value / size)} {letter}"
    number = re.sub(r"e([-+])0*", lambda sign: "e-" if sign[1] == "-" else "e", f"{value:g}")
    return f"\N{MINUS SIGN}{number[1:]}" if number.startswith("-") else number


def write_unit(scale: Any, unit: str) -> None:
    """Write the unit beside a scale of colors."""
    scale.set_label(drawable(unit, MAX_AXIS_NAME), fontproperties=text_font(8.0), parse_math=False)
    scale.ax.tick_params(labelsize=7)


def _letters(line: str, width: int) -> int:
    """Return how many letters of a line are as long as `width` narrow letters. Letters of East Asia and emoji
    are twice as wide."""
    wide = sum(east_asian_width(letter) in "WF" for letter in line)
    return width * len(line) // max(1, len(line) + wide) if wide else width
