"""Alignments as a PNG: target words down, source words across, one example below the other."""

import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from foveal.core.errors import UserError
from foveal.inspection.attention_maps.compute import WordAttention

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CELL, SMALL_CELL = 0.4, 0.22
"""Inches of a cell's side. With many words it shrinks to the small one, to keep to `SIDE` inches."""
SIDE, MAX_SIDE_INCHES = 9.0, 40.0
"""Beyond `MAX_SIDE_INCHES` cells shrink further, and words can't be read: a page (.html) is better."""
GAP, MAX_HEIGHT = 0.4, 200.0
"""Between two examples, and for all of them."""
GRID_COLOR, MUTED_COLOR = "#dfe4ea", "#52606d"
REPEAT_LABELS_ROWS = 30
"""Below so many rows the source is written once more."""
MAX_WORD_LENGTH = 24
"""Longer words are cut."""
FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans",
    "Microsoft YaHei",
    "Yu Gothic",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Arial Unicode MS",
)
"""Where letters are looked for, in this order; one that no installed font has is drawn as a box."""


def plot_word_attention(examples: Sequence[WordAttention], head: str | None) -> bytes:
    """The PNG's content; `head` None draws the mean. Errors: UserError for more than fits a picture."""
    from matplotlib.figure import Figure

    content = io.BytesIO()
    figure = Figure(figsize=(1, 1))  # so that places in it are inches; it is cropped to what is drawn
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        top = 0.0
        for number, example in enumerate(examples):
            cell = _cell_size(max(example.weights.shape[1:]))
            width, height = len(example.source) * cell, len(example.target) * cell
            axes = figure.add_axes((0, 0, width, height), label=str(number))
            _plot_example(axes, example, head, cell)
            box = axes.get_tightbbox()
            assert box is not None  # it is visible
            box = box.transformed(figure.dpi_scale_trans.inverted())
            axes.set_position((0, top - box.y1, width, height))
            top -= box.height + GAP
            if -top > MAX_HEIGHT:
                raise UserError(
                    f"a picture of these {len(examples)} examples would be taller than {MAX_HEIGHT:.0f} "
                    "inches; give fewer, or write a .html"
                )
        figure.savefig(content, dpi=130, bbox_inches="tight")
    return content.getvalue()


def _cell_size(words: int) -> float:
    """Inches of a cell's side where the longer sentence has so many words."""
    return min(max(min(SIDE / words, CELL), SMALL_CELL), MAX_SIDE_INCHES / words)


def _plot_example(axes: "Axes", example: WordAttention, head: str | None, cell: float) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.font_manager import FontProperties, fontManager

    view = example.head_weights(head)
    (rows, columns), most = view.shape, float(view.max()) or 1.0
    shades = LinearSegmentedColormap.from_list("shades", ["#ffffff", "#7aa7d9", "#0b2a5b"])
    image = axes.imshow(view, cmap=shades, vmin=0, vmax=most, aspect="auto", interpolation="nearest")
    installed = {font.name for font in fontManager.ttflist}
    size = min(11.0, 46 * cell)
    font = FontProperties(family=[name for name in FONTS if name in installed], size=size)
    axes.xaxis.tick_top()
    axes.set_xticks(
        range(columns),
        [_truncate(word) for word in example.source],
        rotation=90,
        parse_math=False,
        fontproperties=font,
    )
    axes.set_yticks(
        range(rows), [_truncate(word) for word in example.target], parse_math=False, fontproperties=font
    )
    # Lines drawn as two collections; as ticks of a grid they take longer than all the rest.
    axes.vlines(
        [column - 0.5 for column in range(1, columns)], -0.5, rows - 0.5, colors=GRID_COLOR, linewidth=0.6
    )
    axes.hlines([row - 0.5 for row in range(1, rows)], -0.5, columns - 0.5, colors=GRID_COLOR, linewidth=0.6)
    axes.tick_params(length=0, labelbottom=rows > REPEAT_LABELS_ROWS)
    axes.spines[:].set_color("#9aa5b1")
    axes.set_xlabel("source: read", fontsize=9, color=MUTED_COLOR)
    axes.set_ylabel("target: written", fontsize=9, color=MUTED_COLOR)
    axes.xaxis.set_label_position("top")
    width, height = columns * cell, rows * cell
    long = min(1.0, 2 / height)  # two inches, in shares of the axes
    bar = axes.inset_axes((1 + 0.15 / width, 1 - long, 0.12 / width, long))
    heads = len(example.weights)
    which = "" if heads == 1 else f", mean of {heads} heads" if head is None else f", head {head}"
    scale = axes.figure.colorbar(image, cax=bar)
    scale.set_label(f"weight{which}", fontsize=9, color=MUTED_COLOR)
    scale.ax.tick_params(labelsize=8)


def _truncate(word: str) -> str:
    return word if len(word) <= MAX_WORD_LENGTH else word[: MAX_WORD_LENGTH - 1] + "…"
