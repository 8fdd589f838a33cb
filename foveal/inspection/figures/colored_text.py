"""Text with a color behind each token: one paragraph for each row of numbers, and the scale below."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from foveal.inspection.figures.text import drawable, write_title, write_unit
from foveal.inspection.panels import ColoredText
from foveal.inspection.style import DIVERGING_MAP, DPI, MUTED_COLOR, SEQUENTIAL_MAP, letters_on, text_font

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

LETTER, LINE, WIDTH = 10 / DPI, 0.19, 9.3
"""Inches of a letter, a line and a paragraph. A letter is ten pixels, since fonts round."""
SCALE = 0.12
"""Inches that the scale of colors needs at least."""
MAX_LINES, MAX_LINE = 60, int(WIDTH / LETTER) - 2
"""Lines of a paragraph, and letters of a line: what is beyond is left away, and said."""
MONOSPACE = 72 * LETTER / 0.602
"""Points of the letters of equal widths, so that each is as wide as a place."""
EQUAL_WIDTHS = re.compile("[\u0021-\u02ff\u0370-\u03ff\u0400-\u052f]")
"""The letters that are drawn with equal widths: Latin, Greek, Cyrillic."""
SPACE = "\N{NO-BREAK SPACE}"
WHITE = (1.0, 1.0, 1.0, 1.0)


class _Placed(NamedTuple):
    """A piece of a token on a line."""

    text: str
    token: int
    line: int
    column: int


def size(panel: ColoredText) -> tuple[float, float]:
    """Return width and height in inches."""
    lines = _line_count([*_place(panel.tokens)])
    return WIDTH, max(1, len(panel.array.values)) * (LINE * (lines + 1.5)) + 0.45


def draw(figure: "SubFigure", panel: ColoredText) -> None:
    """Write the text once for each row, below the name of the row."""
    axes = figure.subplots()
    axes.set_axis_off()
    pieces = [*_place(panel.tokens)]
    shown = [piece for piece in pieces if piece.line < MAX_LINES]
    hidden = len({piece.token for piece in pieces}) - len({piece.token for piece in shown})
    more = f" ({hidden:,} more tokens)" if hidden else ""
    scale = _scale(panel)
    rows, top = panel.array.axes[0], 0.0
    for number, values in enumerate(panel.array.values):
        name = rows.labels[number] if rows.labels else f"{rows.name} {number}"
        look: dict[str, Any] = {"va": "center", "parse_math": False, "color": MUTED_COLOR}
        axes.text(0, top + LINE / 2, drawable(f"{name}{more}", 120), fontproperties=text_font(8.0), **look)
        fills = np.where(np.isfinite(values)[:, None], scale.cmap(scale.norm(values)), WHITE)
        _draw_pieces(axes, shown, fills, top)
        top += LINE * (_line_count(pieces) + 1.5)
    axes.set(xlim=(0, WIDTH - 0.2), ylim=(top, 0))
    write_title(axes, panel.title, WIDTH)
    part = max(0.04, SCALE / size(panel)[1])
    place: dict[str, Any] = {"orientation": "horizontal", "fraction": part, "aspect": 60, "shrink": 0.4}
    bar = figure.colorbar(scale, ax=axes, pad=0, **place)
    if panel.kinds:
        bar.set_ticks(range(len(panel.kinds)), labels=[drawable(kind, 12) for kind in panel.kinds])
    write_unit(bar, panel.array.unit)


def _scale(panel: ColoredText) -> Any:
    """Return the colors of numbers, or a color for each kind."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    if not panel.kinds:
        colors = colormaps[DIVERGING_MAP if panel.diverging else SEQUENTIAL_MAP]
        return ScalarMappable(Normalize(panel.low, panel.high), colors)
    count = len(panel.kinds)
    palette = colormaps["Set3" if count <= 12 else "tab20"]
    kinds = ListedColormap([palette(kind % palette.N) for kind in range(count)])
    return ScalarMappable(Normalize(-0.5, count - 0.5), kinds)


def _draw_pieces(axes: "Axes", pieces: list[_Placed], fills: Any, top: float) -> None:
    """Write pieces of tokens on the colors of their tokens. Letters are black or white, whichever can be
    read. The letters of a line that have equal widths are a single text: many texts take long to draw."""
    from matplotlib.patches import Rectangle
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    # Inches across, whatever the width of the axes: letters keep their size, so their places do, too.
    scale: Any = axes.figure.dpi_scale_trans
    corner: Any = axes.transAxes
    across = scale + ScaledTranslation(0, 0, corner)
    inches = blended_transform_factory(across, axes.transData)
    lines: dict[tuple[int, str], list[str]] = {}
    for piece in pieces:
        fill, left, y = fills[piece.token], piece.column * LETTER, top + (piece.line + 1) * LINE
        box: dict[str, Any] = {"color": fill, "linewidth": 0, "transform": inches}
        axes.add_patch(Rectangle((left, y), LETTER * len(piece.text), LINE, **box))
        color = letters_on(fill)
        line = lines.setdefault((piece.line, color), [])
        line += [SPACE] * (piece.column - len(line))
        for offset, letter in enumerate(piece.text):
            line.append(letter if EQUAL_WIDTHS.fullmatch(letter) else SPACE)
            if not EQUAL_WIDTHS.fullmatch(letter) and letter != " ":
                middle = left + (offset + 0.5) * LETTER
                look: dict[str, Any] = {"fontproperties": text_font(8.0), "ha": "center", "color": color}
                look |= {"va": "center", "transform": inches}
                axes.text(middle, y + LINE / 2, letter, parse_math=False, **look)
    for (number, color), letters in lines.items():
        y, text = top + (number + 1.5) * LINE, "".join(letters).rstrip(SPACE)
        look = {"family": "DejaVu Sans Mono", "size": MONOSPACE, "color": color, "transform": inches}
        axes.text(0, y, text, va="center_baseline", parse_math=False, **look)


def _line_count(pieces: list[_Placed]) -> int:
    return min(MAX_LINES, 1 + max((piece.line for piece in pieces), default=0))


def _place(tokens: tuple[str, ...]) -> Iterator[_Placed]:
    """Yield the pieces of the tokens, each on a line. A line break ends a line and is drawn as a sign."""
    line = column = 0
    for number, token in enumerate(tokens):
        for letter_line in token.replace("\n", "⏎\n").splitlines(keepends=True) or [""]:
            text, ends = _letters(letter_line.rstrip("\n")), letter_line.endswith("\n")
            if column and column + len(text) > MAX_LINE:
                line, column = line + 1, 0
            for start in range(0, len(text), MAX_LINE):
                if start:
                    line, column = line + 1, 0
                piece = text[start : start + MAX_LINE]
                yield _Placed(piece, number, line, column)
                column += len(piece)
            if ends:
                line, column = line + 1, 0


def _letters(text: str) -> str:
    """Return a text with spaces kept, and control characters as signs."""
    return "".join(" " if letter == " " else drawable(letter) or " " for letter in text)
