"""Attention between words and an image as a PNG ("Show, attend and tell", Xu et al. 2015).

The first panel is the image. A panel for each word follows, in reading order, with the word's weights drawn
over the image.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from foveal.inspection.style import (
    MUTED_COLOR,
    check_height,
    cut_text,
    figure_png,
    label_below,
    missing_letters_allowed,
    new_figure,
    show_pixels,
    text_font,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_COLUMNS = 6
"""Panels side by side."""
PANEL_SIZE, GAP, LINE_HEIGHT, NUMBER_HEIGHT = 1.5, 0.08, 0.3, 0.2
"""Inches of a panel's longer side, between panels, of a word above, and of a number below."""
OVERLAY_ALPHA = 0.65
"""The opacity of the weights over the image: more than half, so that no image outshines a weight."""
MAX_WORD_LENGTH = 16
"""Longer words are cut."""


class ImageAttention(NamedTuple):
    """Attention to an image: `weights[t, s]` is how much attention the model pays to grid cell s for
    `words[t]`.

    Cells of the `grid` (rows, columns) are numbered row by row. `pixels` are the pixels that the model read.
    The grid covers exactly these pixels.
    """

    pixels: UInt8[np.ndarray, "H W 3"]
    grid: tuple[int, int]
    weights: Float[np.ndarray, "T S"]
    words: Sequence[str]


def plot_image_attention(examples: Sequence[ImageAttention]) -> bytes:
    """Return the PNG of the examples, each below the previous example.

    White is the largest weight of a word, which is written below the panel. Black is 0. The weight of a cell
    is drawn at the center of the cell, and interpolated between centers.

    Raises: UserError: there are more panels than fit in a picture.
    Raises: ValueError: a word or a cell has no weight.
    """
    for example in examples:
        if example.weights.shape != (len(example.words), math.prod(example.grid)):
            raise ValueError(
                f"weights {example.weights.shape} for {len(example.words)} words and a grid {example.grid}: "
                "each word and cell needs a weight"
            )
    panels = [1 + len(example.words) for example in examples]
    rows, columns = [math.ceil(count / MAX_COLUMNS) for count in panels], min(MAX_COLUMNS, max(panels))
    width, height = columns * (PANEL_SIZE + GAP) + GAP, sum(rows) * (LINE_HEIGHT + PANEL_SIZE + NUMBER_HEIGHT)
    check_height(height, f"these {sum(panels):,} panels", "give fewer images, or shorter texts")
    figure, top = new_figure(width, height), height
    with missing_letters_allowed():
        for example, count in zip(examples, rows, strict=True):
            _plot_example(figure, example, top)
            top -= count * (LINE_HEIGHT + PANEL_SIZE + NUMBER_HEIGHT)
    return figure_png(figure)


def _plot_example(figure: "Figure", example: ImageAttention, top: float) -> None:
    """Draw the panels of an example below `top`, in inches from the figure's lower edge."""
    width, height = figure.get_size_inches()
    for number in range(1 + len(example.words)):
        row, column = divmod(number, MAX_COLUMNS)
        left = GAP + column * (PANEL_SIZE + GAP)
        low = top - row * (LINE_HEIGHT + PANEL_SIZE + NUMBER_HEIGHT) - LINE_HEIGHT - PANEL_SIZE
        axes = figure.add_axes((left / width, low / height, PANEL_SIZE / width, PANEL_SIZE / height))
        axes.set_axis_off()
        show_pixels(axes, example.pixels)
        if number > 0:
            _draw_weights(axes, example, number - 1)


def _draw_weights(axes: "Axes", example: ImageAttention, number: int) -> None:
    """Draw the weights of word `number` over the image, the word above, and its largest weight below."""
    weights, (height, width, _) = example.weights[number].reshape(example.grid), example.pixels.shape
    largest = float(weights.max())
    extent = (-0.5, width - 0.5, height - 0.5, -0.5)
    overlay = axes.imshow(weights, "gray", interpolation="bilinear", extent=extent)
    overlay.set(alpha=OVERLAY_ALPHA, clim=(0, largest or 1.0))
    word = cut_text(example.words[number], MAX_WORD_LENGTH)
    center: dict[str, Any] = {"transform": axes.transAxes, "ha": "center", "parse_math": False}
    axes.text(0.5, 1.03, word, va="bottom", fontproperties=text_font(9.0), **center)
    label_below(axes, f"{largest:.2g}", -0.02, MUTED_COLOR, 7.0)
