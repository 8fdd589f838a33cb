"""Attention between words as a PNG: a row per target word, a column per source word, examples below each
other."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from foveal.inspection.attention_maps.compute import WordAttention
from foveal.inspection.style import (
    EDGE_COLOR,
    GRID_COLOR,
    MUTED_COLOR,
    SHADES,
    check_height,
    cut_text,
    figure_png,
    missing_letters_allowed,
    new_figure,
    text_font,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CELL, SMALL_CELL = 0.4, 0.22
"""Inches of a cell's side. With many words cells shrink to the small side, to keep to `SIDE` inches."""
SIDE, MAX_SIDE_INCHES = 9.0, 40.0
"""Beyond `MAX_SIDE_INCHES` cells shrink further, and words become illegible: a page (.html) is better."""
GAP = 0.4
"""Inches between two examples."""
REPEAT_LABELS_ROWS = 30
"""In a table of more rows the source is written once more, below."""
MAX_WORD_LENGTH = 24
"""Longer words are cut."""


def plot_word_attention(examples: Sequence[WordAttention], head: str | None) -> bytes:
    """Return the PNG of a head, or of the mean of all heads if `head` is None.

    Raises: UserError: the examples are too large for a picture.
    """
    figure = new_figure(1.0, 1.0)  # coordinates are inches then; the picture is cropped to the drawing
    top = 0.0
    with missing_letters_allowed():
        for number, example in enumerate(examples):
            cell = _cell_size(max(example.weights.shape[1:]))
            width, height = len(example.source) * cell, len(example.target) * cell
            axes = figure.add_axes((0, 0, width, height), label=str(number))
            _plot_example(axes, example, head, cell)
            box = axes.get_tightbbox()
            assert box is not None  # the axes are visible
            box = box.transformed(figure.dpi_scale_trans.inverted())
            axes.set_position((0, top - box.y1, width, height))
            top -= box.height + GAP
            check_height(-top, f"these {len(examples)} examples", "give fewer, or write a .html")
    return figure_png(figure, crop=True)


def _cell_size(words: int) -> float:
    """Return the side of a cell in inches, if the longer sentence has this many `words`."""
    return min(max(min(SIDE / words, CELL), SMALL_CELL), MAX_SIDE_INCHES / words)


def _plot_example(axes: "Axes", example: WordAttention, head: str | None, cell: float) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    view = example.head_weights(head)
    (rows, columns), largest = view.shape, float(view.max()) or 1.0
    shades = LinearSegmentedColormap.from_list("shades", SHADES)
    image = axes.imshow(view, cmap=shades, vmin=0, vmax=largest, aspect="auto", interpolation="nearest")
    font = text_font(min(11.0, 46 * cell))
    axes.xaxis.tick_top()
    sources, targets = (
        [cut_text(word, MAX_WORD_LENGTH) for word in words] for words in (example.source, example.target)
    )
    axes.set_xticks(range(columns), sources, rotation=90, parse_math=False, fontproperties=font)
    axes.set_yticks(range(rows), targets, parse_math=False, fontproperties=font)
    # The lines are two collections: as ticks of a grid they would take longer than all the rest.
    axes.vlines(
        [column - 0.5 for column in range(1, columns)], -0.5, rows - 0.5, colors=GRID_COLOR, linewidth=0.6
    )
    axes.hlines([row - 0.5 for row in range(1, rows)], -0.5, columns - 0.5, colors=GRID_COLOR, linewidth=0.6)
    axes.tick_params(length=0, labelbottom=rows > REPEAT_LABELS_ROWS)
    axes.spines[:].set_color(EDGE_COLOR)
    axes.set_xlabel("source: read", fontsize=9, color=MUTED_COLOR)
    axes.set_ylabel("target: written", fontsize=9, color=MUTED_COLOR)
    axes.xaxis.set_label_position("top")
    width, height = columns * cell, rows * cell
    length = min(1.0, 2 / height)  # two inches, in shares of the axes
    bar = axes.inset_axes((1 + 0.15 / width, 1 - length, 0.12 / width, length))
    heads = len(example.weights)
    head_name = "" if heads == 1 else f", mean of {heads} heads" if head is None else f", head {head}"
    scale = axes.figure.colorbar(image, cax=bar)
    scale.set_label(f"weight{head_name}", fontsize=9, color=MUTED_COLOR)
    scale.ax.tick_params(labelsize=8)
