"""Episodes drawn on their maps, as a PNG: the path of the model, and below it the reference if known."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from foveal.inspection.style import (
    CORRECT_COLOR,
    HIGHLIGHT_COLOR,
    MUTED_COLOR,
    THUMBNAIL_DPI,
    check_height,
    figure_png,
    image_grid,
    label_below,
    new_figure,
)
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

MAP_SIZE, LINE_HEIGHT, MAX_LINE_LENGTH, MAX_COLUMNS = 3.2, 0.16, 48, 3
"""Inches of a map, and of a line of its instruction; letters in a line; maps side by side."""


class EpisodePath(NamedTuple):
    """An episode with the path of the agent."""

    cells: MapArray
    start: Pose
    moves: Sequence[int]
    """The moves of the agent, including the stop if the agent stopped."""
    reference: Sequence[int] | None
    instruction: str


def plot_episodes(episodes: Sequence[EpisodePath]) -> bytes:
    """Return the PNG. A path that ends at the goal is green, other paths are red.

    Raises: UserError: there are more maps than fit in a picture.
    """
    columns = min(MAX_COLUMNS, len(episodes))
    texts = [textwrap.wrap(episode.instruction, MAX_LINE_LENGTH) for episode in episodes]
    below = LINE_HEIGHT * (1 + max(map(len, texts)))
    rows = -(-len(episodes) // columns)
    height = rows * (MAP_SIZE + below)
    check_height(height, f"{len(episodes):,} maps", "give fewer")
    figure = new_figure(columns * MAP_SIZE, height)
    grid = image_grid(figure, rows, columns)
    figure.subplots_adjust(0.01, below / height, 0.99, 0.995, 0.04, below / MAP_SIZE)
    for axes, episode, lines in zip(grid.flat, episodes, texts, strict=False):
        _plot_episode(axes, episode)
        label_below(axes, "\n".join(lines), -0.02)
    return figure_png(figure, THUMBNAIL_DPI)


def _plot_episode(axes: "Axes", episode: EpisodePath) -> None:
    axes.imshow(render_map(episode.cells), interpolation="nearest")
    path, color = path_positions(episode.cells, episode.start, episode.moves), MUTED_COLOR
    if episode.reference is not None:
        reference = path_positions(episode.cells, episode.start, episode.reference)
        is_correct = (path[-1] == reference[-1]).all() and STOP in episode.moves
        color = CORRECT_COLOR if is_correct else HIGHLIGHT_COLOR  # amber would be lost on the map
        axes.plot(reference[:, 1], reference[:, 0], color="black", linewidth=1, linestyle=":")
        axes.plot(reference[-1, 1], reference[-1, 0], marker="*", color="black", markersize=11)
    axes.plot(path[:, 1], path[:, 0], color=color, linewidth=2.2, alpha=0.8)
    axes.plot(
        path[-1, 1], path[-1, 0], marker="o" if STOP in episode.moves else "x", color=color, markersize=6
    )
    down, across = HEADING_OFFSETS[episode.start[2]]
    axes.annotate(
        "",
        (path[0, 1] + 0.8 * TILE_PIXELS * across, path[0, 0] + 0.8 * TILE_PIXELS * down),
        (path[0, 1], path[0, 0]),
        arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 2},
    )


def path_positions(cells: MapArray, start: Pose, moves: Sequence[int]) -> Float[np.ndarray, "T 2"]:
    """Return the positions (vertical, horizontal) in pixels of the map's image: at the start, and after each
    move."""
    poses = np.array(path_poses(cells, start, moves))
    positions: Float[np.ndarray, "T 2"] = (poses[:, :2] - MAP_MARGIN + 0.5) * TILE_PIXELS - 0.5
    return positions
