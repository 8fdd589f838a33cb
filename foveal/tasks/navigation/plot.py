"""Walks drawn on their maps, as a PNG: the way that was taken, and below it the right one if it is known."""

import io
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from foveal.core.errors import UserError
from foveal.tasks.navigation.grid_world import AHEAD, MARGIN, STOP, TILE, Cells, Pose, followed, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIDE, LINE, LETTERS, COLUMNS, TALLEST = 3.2, 0.16, 48, 3, 200.0
"""Inches of a map, and of a line of its instruction; letters in one; maps side by side; inches in all."""
WRONG, RIGHT, FAINT = "#e11d48", "#15803d", "#52606d"


class Walked(NamedTuple):
    cells: Cells
    start: Pose
    moves: Sequence[int]
    """Those that were made, with their stop if there was one."""
    right: Sequence[int] | None
    instruction: str


def draw(walks: Sequence[Walked]) -> bytes:
    """The PNG's content: a walk that ends in the right place is green, another one red. UserError for more
    than fits a picture."""
    from matplotlib.figure import Figure

    columns = min(COLUMNS, len(walks))
    texts = [textwrap.wrap(walk.instruction, LETTERS) for walk in walks]
    below = LINE * (1 + max(map(len, texts)))
    rows = -(-len(walks) // columns)
    if rows * (SIDE + below) > TALLEST:
        raise UserError(
            f"a picture of {len(walks):,} maps would be taller than {TALLEST:.0f} inches; give fewer"
        )
    figure = Figure(figsize=(columns * SIDE, rows * (SIDE + below)))
    grid = figure.subplots(rows, columns, squeeze=False)
    figure.subplots_adjust(0.01, below / figure.get_figheight(), 0.99, 0.995, 0.04, below / SIDE)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, walk, lines in zip(grid.flat, walks, texts, strict=False):
        _draw(axes, walk, "\n".join(lines))
    content = io.BytesIO()
    figure.savefig(content, dpi=110)
    return content.getvalue()


def _draw(axes: "Axes", walk: Walked, text: str) -> None:
    axes.imshow(picture(walk.cells), interpolation="nearest")
    own, colour = places(walk.cells, walk.start, walk.moves), FAINT
    if walk.right is not None:
        right = places(walk.cells, walk.start, walk.right)
        colour = RIGHT if (own[-1] == right[-1]).all() and STOP in walk.moves else WRONG
        axes.plot(right[:, 1], right[:, 0], color="black", linewidth=1, linestyle=":")
        axes.plot(right[-1, 1], right[-1, 0], marker="*", color="black", markersize=11)
    axes.plot(own[:, 1], own[:, 0], color=colour, linewidth=2.2, alpha=0.8)
    axes.plot(own[-1, 1], own[-1, 0], marker="o" if STOP in walk.moves else "x", color=colour, markersize=6)
    down, across = AHEAD[walk.start[2]]
    axes.annotate(
        "",
        (own[0, 1] + 0.8 * TILE * across, own[0, 0] + 0.8 * TILE * down),
        (own[0, 1], own[0, 0]),
        arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2},
    )
    axes.text(0.5, -0.02, text, transform=axes.transAxes, ha="center", va="top", fontsize=8, parse_math=False)


def places(cells: Cells, start: Pose, moves: Sequence[int]) -> Float[np.ndarray, "T 2"]:
    """Down and across in pixels of the map's picture: at the start, and after each move."""
    poses = np.array(followed(cells, start, moves))
    found: Float[np.ndarray, "T 2"] = (poses[:, :2] - MARGIN + 0.5) * TILE - 0.5
    return found
