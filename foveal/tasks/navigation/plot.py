"""Walks drawn on their maps, as a PNG: the way that was taken, and below it the right one if it is known."""

import io
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from foveal.core.errors import UserError
from foveal.tasks.navigation.grid_world import (
    HEADING_OFFSETS,
    MAP_MARGIN,
    STOP,
    TILE_PIXELS,
    MapArray,
    Pose,
    path_poses,
    render_map,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAP_SIZE, LINE_HEIGHT, MAX_LINE_LENGTH, MAX_COLUMNS, MAX_HEIGHT = 3.2, 0.16, 48, 3, 200.0
"""Inches of a map, and of a line of its instruction; letters in one; maps side by side; inches in all."""
INCORRECT_COLOR, CORRECT_COLOR, MUTED_COLOR = "#e11d48", "#15803d", "#52606d"


class EpisodePath(NamedTuple):
    cells: MapArray
    start: Pose
    moves: Sequence[int]
    """Those that were made, with their stop if there was one."""
    reference: Sequence[int] | None
    instruction: str


def plot_episodes(episodes: Sequence[EpisodePath]) -> bytes:
    """The PNG's content: a walk that ends in the right place is green, another one red. UserError for more
    than fits a picture."""
    from matplotlib.figure import Figure

    columns = min(MAX_COLUMNS, len(episodes))
    texts = [textwrap.wrap(walk.instruction, MAX_LINE_LENGTH) for walk in episodes]
    below = LINE_HEIGHT * (1 + max(map(len, texts)))
    rows = -(-len(episodes) // columns)
    if rows * (MAP_SIZE + below) > MAX_HEIGHT:
        raise UserError(
            f"a picture of {len(episodes):,} maps would be taller than {MAX_HEIGHT:.0f} inches; give fewer"
        )
    figure = Figure(figsize=(columns * MAP_SIZE, rows * (MAP_SIZE + below)))
    grid = figure.subplots(rows, columns, squeeze=False)
    figure.subplots_adjust(0.01, below / figure.get_figheight(), 0.99, 0.995, 0.04, below / MAP_SIZE)
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, walk, lines in zip(grid.flat, episodes, texts, strict=False):
        _plot_episode(axes, walk, "\n".join(lines))
    content = io.BytesIO()
    figure.savefig(content, dpi=110)
    return content.getvalue()


def _plot_episode(axes: "Axes", episode: EpisodePath, text: str) -> None:
    axes.imshow(render_map(episode.cells), interpolation="nearest")
    own, colour = path_positions(episode.cells, episode.start, episode.moves), MUTED_COLOR
    if episode.reference is not None:
        right = path_positions(episode.cells, episode.start, episode.reference)
        colour = CORRECT_COLOR if (own[-1] == right[-1]).all() and STOP in episode.moves else INCORRECT_COLOR
        axes.plot(right[:, 1], right[:, 0], color="black", linewidth=1, linestyle=":")
        axes.plot(right[-1, 1], right[-1, 0], marker="*", color="black", markersize=11)
    axes.plot(own[:, 1], own[:, 0], color=colour, linewidth=2.2, alpha=0.8)
    axes.plot(
        own[-1, 1], own[-1, 0], marker="o" if STOP in episode.moves else "x", color=colour, markersize=6
    )
    down, across = HEADING_OFFSETS[episode.start[2]]
    axes.annotate(
        "",
        (own[0, 1] + 0.8 * TILE_PIXELS * across, own[0, 0] + 0.8 * TILE_PIXELS * down),
        (own[0, 1], own[0, 0]),
        arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2},
    )
    axes.text(0.5, -0.02, text, transform=axes.transAxes, ha="center", va="top", fontsize=8, parse_math=False)


def path_positions(cells: MapArray, start: Pose, moves: Sequence[int]) -> Float[np.ndarray, "T 2"]:
    """Down and across in pixels of the map's picture: at the start, and after each move."""
    poses = np.array(path_poses(cells, start, moves))
    found: Float[np.ndarray, "T 2"] = (poses[:, :2] - MAP_MARGIN + 0.5) * TILE_PIXELS - 0.5
    return found
