"""Where in an image a model looked for each word, as a PNG ("Show, attend and tell", Xu et al. 2015).

First the image, then one panel a word with its weights laid over the image, in reading order.
"""

import io
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from foveal.core.errors import UserError
from foveal.inspection.attention_maps.plot import FONTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.font_manager import FontProperties

MAX_COLUMNS = 6
"""Panels side by side."""
PANEL_SIZE, GAP, LINE_HEIGHT, NUMBER_HEIGHT, MAX_HEIGHT = 1.5, 0.08, 0.3, 0.2, 200.0
"""Inches of a panel's longer side, between panels, of a word above, of a number below, and of the picture."""
DPI = 130
OVERLAY_ALPHA = 0.65
"""How much of a panel is weight, the rest is image: more than half, so that no image outshines a weight."""
MAX_WORD_LENGTH = 16
"""Longer words are cut."""
MUTED_COLOR = "#52606d"


class ImageAttention(NamedTuple):
    """`weights[t]` says how much is read of each place of `grid` (rows, columns), row by row, for `words[t]`.

    `pixels` are those that the model was fed: the whole of what the grid covers, and nothing beside it.
    """

    pixels: UInt8[np.ndarray, "H W 3"]
    grid: tuple[int, int]
    weights: Float[np.ndarray, "T S"]
    words: Sequence[str]


def plot_image_attention(examples: Sequence[ImageAttention]) -> bytes:
    """The PNG's content, one example below the other.

    White is the largest weight of a word, which is written below it; black is 0. A place has its weight at
    its centre; between centres it changes evenly. Errors: UserError for more panels than fit a picture,
    ValueError for weights that are not one for each word and place.
    """
    from matplotlib.figure import Figure

    for one in examples:
        if one.weights.shape != (len(one.words), math.prod(one.grid)):
            raise ValueError(
                f"weights {one.weights.shape} for {len(one.words)} words and a grid {one.grid}: "
                "one is needed for each word and place"
            )
    panels = [1 + len(one.words) for one in examples]
    rows, columns = [math.ceil(count / MAX_COLUMNS) for count in panels], min(MAX_COLUMNS, max(panels))
    width, height = columns * (PANEL_SIZE + GAP) + GAP, sum(rows) * (LINE_HEIGHT + PANEL_SIZE + NUMBER_HEIGHT)
    if height > MAX_HEIGHT:
        raise UserError(
            f"a picture of these {sum(panels):,} panels would be taller than {MAX_HEIGHT:.0f} inches; "
            "give fewer images, or shorter texts"
        )
    figure, content, top = Figure(figsize=(width, height)), io.BytesIO(), height
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        for one, count in zip(examples, rows, strict=True):
            _plot_example(figure, one, top)
            top -= count * (LINE_HEIGHT + PANEL_SIZE + NUMBER_HEIGHT)
        figure.savefig(content, dpi=DPI)
    return content.getvalue()


def _plot_example(figure: "Figure", one: ImageAttention, top: float) -> None:
    """`top`: inches from the lower edge."""
    width, height = figure.get_size_inches()
    font = _font()
    around = (-0.5, one.pixels.shape[1] - 0.5, one.pixels.shape[0] - 0.5, -0.5)
    for number in range(1 + len(one.words)):
        row, column = divmod(number, MAX_COLUMNS)
        left = GAP + column * (PANEL_SIZE + GAP)
        low = top - row * (LINE_HEIGHT + PANEL_SIZE + NUMBER_HEIGHT) - LINE_HEIGHT - PANEL_SIZE
        axes = figure.add_axes((left / width, low / height, PANEL_SIZE / width, PANEL_SIZE / height))
        axes.set_axis_off()
        axes.imshow(one.pixels, interpolation="nearest")
        if number > 0:
            weights = one.weights[number - 1].reshape(one.grid)
            most = float(weights.max())
            veil = axes.imshow(weights, "gray", interpolation="bilinear", extent=around)
            veil.set(alpha=OVERLAY_ALPHA, clim=(0, most or 1.0))
            middle: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "parse_math": False}
            axes.text(0.5, 1.03, _truncate(one.words[number - 1]), va="bottom", fontproperties=font, **middle)
            axes.text(0.5, -0.02, f"{most:.2g}", va="top", fontsize=7, color=MUTED_COLOR, **middle)


def _font() -> "FontProperties":
    from matplotlib.font_manager import FontProperties, fontManager

    installed = {font.name for font in fontManager.ttflist}
    return FontProperties(family=[name for name in FONTS if name in installed], size=9)


def _truncate(word: str) -> str:
    return word if len(word) <= MAX_WORD_LENGTH else word[: MAX_WORD_LENGTH - 1] + "…"
