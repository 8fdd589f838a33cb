"""Episodes drawn on their maps: the path of the model, and the reference if known."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from foveal.inspection.panels import Caption, ImageRow, Images, Mark, Role, Tile
from foveal.inspection.payload import Payload
from foveal.tasks.navigation.grid_world import (
    HEADING_OFFSETS,
    MAP_MARGIN,
    STOP,
    TILE_PIXELS,
    MapArray,
    Pose,
    moves_to_text,
    path_poses,
    render_map,
)

MAP_SIZE, MAX_LINE_LENGTH, MAX_COLUMNS = 3.2, 48, 3
"""Inches of a map; letters in a line of its instruction; maps side by side."""
CAVEAT = (
    "a few episodes, not a score: foveal evaluate measures all of them; green: the path stops at the goal, "
    "red: it does not; dotted: the reference, which is only one of the right paths"
)


class EpisodePath(NamedTuple):
    """An episode with the path of the agent."""

    cells: MapArray
    start: Pose
    moves: Sequence[int]
    """The moves of the agent, including the stop if the agent stopped."""
    reference: Sequence[int] | None
    instruction: str


def navigation_payload(subject: str, episodes: Sequence[EpisodePath]) -> Payload:
    """Return the maps with the paths of the agent, and the moves as facts."""
    shown, facts = [], []
    for episode in episodes:
        right = None if episode.reference is None else moves_to_text(episode.reference)
        one = {"instruction": episode.instruction, "moves": moves_to_text(episode.moves), "right": right}
        shown.append(one)
        facts += [(name, value) for name, value in one.items() if value is not None]
    tiles = [*map(_tile, episodes)]
    rows = [
        ImageRow(tuple(tiles[start : start + MAX_COLUMNS])) for start in range(0, len(tiles), MAX_COLUMNS)
    ]
    panels, values = (Images("", tuple(rows), MAP_SIZE),), {"run": subject, "episodes": shown}
    title = f"Paths of {subject}"
    return Payload("navigation", subject, title, panels, CAVEAT, "exact", tuple(facts), values)


def _tile(episode: EpisodePath) -> Tile:
    lines = textwrap.wrap(episode.instruction, MAX_LINE_LENGTH)
    return Tile(render_map(episode.cells), tuple(map(Caption, lines)), tuple(_marks(episode)))


def _marks(episode: EpisodePath) -> Iterator[Mark]:
    """Yield the reference if known, the path of the agent, and the direction in which it starts."""
    path = path_positions(episode.cells, episode.start, episode.moves)
    role: Role = "muted"
    if episode.reference is not None:
        reference = path_positions(episode.cells, episode.start, episode.reference)
        is_correct = (path[-1] == reference[-1]).all() and STOP in episode.moves
        role = "correct" if is_correct else "highlight"  # amber would be lost on the map
        yield Mark(reference, "plain", dotted=True, end="star")
    yield Mark(path, role, end="dot" if STOP in episode.moves else "cross")
    forward = 0.8 * TILE_PIXELS * np.array(HEADING_OFFSETS[episode.start[2]])
    yield Mark(np.stack([path[0], path[0] + forward]), role, end="arrow")


def path_positions(cells: MapArray, start: Pose, moves: Sequence[int]) -> Float[np.ndarray, "T 2"]:
    """Return the positions (vertical, horizontal) in pixels of the map's image: at the start, and after each
    move."""
    poses = np.array(path_poses(cells, start, moves))
    positions: Float[np.ndarray, "T 2"] = (poses[:, :2] - MAP_MARGIN + 0.5) * TILE_PIXELS - 0.5
    return positions
