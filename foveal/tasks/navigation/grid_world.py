"""A grid world seen from inside: maps, moves, views as images, and shortest paths.

A map is rows of text with a letter for each square. An agent stands on a floor square and faces one of four
directions. A move turns the agent, or moves it one square forward. Walls and things block the way.
"""

from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import accumulate

import numpy as np
import torch
from jaxtyping import Int, UInt8
from numpy.typing import NDArray
from torch import Tensor

MOVES = ("left", "right", "forward", "stop")
LEFT, RIGHT, FORWARD, STOP = range(4)
HEADINGS = ("north", "east", "south", "west")
HEADING_OFFSETS = ((-1, 0), (0, 1), (1, 0), (0, -1))
"""Offsets in rows and columns to the square in front, by heading."""
FLOOR, WALL = ".", "#"
THING_COLORS = {"red": (220, 40, 40), "green": (30, 160, 60), "blue": (40, 80, 225), "yellow": (235, 180, 0)}
THING_KINDS = ("table", "door", "lamp")
THINGS = dict(
    zip("abcdefghijkl", (f"{color} {kind}" for kind in THING_KINDS for color in THING_COLORS), strict=True)
)
"""The things by their letters on a map."""
SYMBOLS = FLOOR + WALL + "".join(THINGS)
VIEW_SIDE, TILE_PIXELS = 5, 8
"""Side of a view in squares, and side of a square in pixels."""
MAP_MARGIN = VIEW_SIDE - 1
"""Squares of wall around a map, so that no view extends beyond it."""
MapArray = NDArray[np.int8]
"""A map (H, W) with its margin, as indices of symbols. 0 is the floor."""
Pose = tuple[int, int, int]
"""Row, column and heading. Rows and columns include the margin."""


def parse_map(rows: Sequence[str]) -> MapArray:
    """Return a map with its margin.

    Raises: ValueError: a symbol is unknown, or rows differ in length.
    """
    shape = len(rows) + 2 * MAP_MARGIN, len(rows[0]) + 2 * MAP_MARGIN
    cells = np.full(shape, SYMBOLS.index(WALL), np.int8)
    cells[MAP_MARGIN:-MAP_MARGIN, MAP_MARGIN:-MAP_MARGIN] = [
        [SYMBOLS.index(symbol) for symbol in row] for row in rows
    ]
    return cells


def moves_to_text(moves: Sequence[int]) -> str:
    return " ".join(MOVES[move] for move in moves)


def parse_moves(text: str) -> list[int]:
    """Return the moves of a text.

    Raises: ValueError: a word is not a move.
    """
    return [MOVES.index(word) for word in text.split()]


def step_poses(
    cells: Int[Tensor, "B H W"], poses: Int[Tensor, "B 3"], moves: Int[Tensor, " B"]
) -> Int[Tensor, "B 3"]:
    """Return the poses after one move each. A blocked agent does not move."""
    heading = poses[:, 2]
    offsets = torch.tensor(HEADING_OFFSETS, device=poses.device)[heading]
    target = poses[:, :2] + offsets * (moves == FORWARD)[:, None]
    is_free = cells[torch.arange(len(cells), device=poses.device), target[:, 0], target[:, 1]] == 0
    new_heading = (heading + (moves == RIGHT).long() - (moves == LEFT).long()) % 4
    return torch.cat([torch.where(is_free[:, None], target, poses[:, :2]), new_heading[:, None]], 1)


def rollout(
    cells: Int[Tensor, "B H W"], start: Int[Tensor, "B 3"], moves: Int[Tensor, "B T"]
) -> Int[Tensor, "B U 3"]:
    """Return the pose at the start, and after each move: U = T + 1."""
    poses = [start]
    for move in moves.unbind(1):
        poses.append(step_poses(cells, poses[-1], move))
    return torch.stack(poses, 1)


def render_views(cells: Int[Tensor, "B H W"], poses: Int[Tensor, "B T 3"]) -> UInt8[Tensor, "B T 3 P P"]:
    """Render the view from each of T poses on a map: `VIEW_SIDE` x `VIEW_SIDE` squares with sides of P
    pixels.

    The nearest row is at the bottom, with the agent's square in the middle. Walls do not hide other squares.
    """
    row, column, heading = poses[..., None, None].unbind(2)
    down, right = torch.tensor(HEADING_OFFSETS, device=poses.device)[heading].unbind(-1)
    forward = torch.arange(VIEW_SIDE - 1, -1, -1, device=poses.device)[:, None]
    sideways = torch.arange(VIEW_SIDE, device=poses.device) - VIEW_SIDE // 2
    rows, columns = row + forward * down + sideways * right, column + forward * right - sideways * down
    map_indices = torch.arange(len(cells), device=poses.device).view(-1, 1, 1, 1)
    tiles = torch.from_numpy(TILES).to(poses.device)[cells[map_indices, rows, columns].long()]
    return tiles.permute(0, 1, 6, 2, 4, 3, 5).flatten(3, 4).flatten(4, 5)


def render_map(cells: MapArray) -> UInt8[np.ndarray, "h w 3"]:
    """Render a map from above, without its margin."""
    tiles = TILES[cells[MAP_MARGIN:-MAP_MARGIN, MAP_MARGIN:-MAP_MARGIN]]
    return np.concatenate([np.concatenate([*row], 1) for row in tiles], 0)


def _make_tiles() -> UInt8[np.ndarray, "S T T 3"]:
    """Return an image of each symbol: the floor with lines at its edges, dark walls, and colored things."""
    tiles = np.full((len(SYMBOLS), TILE_PIXELS, TILE_PIXELS, 3), 235, np.uint8)
    tiles[:, -1] = tiles[:, :, -1] = 215
    tiles[SYMBOLS.index(WALL)] = 90
    for symbol, name in THINGS.items():
        color, kind = name.split()
        tiles[SYMBOLS.index(symbol)][_thing_pixels(kind)] = THING_COLORS[color]
    return tiles


def _thing_pixels(kind: str) -> NDArray[np.bool_]:
    """Return the pixels of a square that a thing of this kind covers: a plate on two legs, a frame, or a
    disc."""
    down, across = np.mgrid[:TILE_PIXELS, :TILE_PIXELS] / (TILE_PIXELS - 1)
    distance = abs(across - 0.5)
    if kind == "table":
        return ((down > 0.2) & (down < 0.5)) | ((down >= 0.5) & (distance > 0.25) & (distance < 0.45))
    if kind == "door":
        return (distance < 0.38) & ~((distance < 0.2) & (down > 0.3) & (down < 0.6))
    return (down - 0.5) ** 2 + distance**2 < 0.15


TILES = _make_tiles()


def step_pose(squares: Sequence[Sequence[int]], pose: Pose, move: int) -> Pose:
    """Return a pose after a move, on a map given as lists. `step_poses` does the same for tensors."""
    row, column, heading = pose
    if move == LEFT:
        return row, column, (heading + 3) % 4
    if move == RIGHT:
        return row, column, (heading + 1) % 4
    down, right = row + HEADING_OFFSETS[heading][0], column + HEADING_OFFSETS[heading][1]
    return (down, right, heading) if move == FORWARD and squares[down][right] == 0 else pose


def shortest_path(cells: MapArray, start: Pose, goal: tuple[int, int]) -> list[int] | None:
    """Return the shortest sequence of moves from a pose to a square, without the stop, by breadth-first
    search.

    Return None if there is no path. Ties go to the path that moves forward first.
    """
    squares = cells.tolist()
    previous: dict[Pose, tuple[Pose, int]] = {start: (start, STOP)}
    queue = deque([start])
    while queue:
        pose = queue.popleft()
        if pose[:2] == goal:
            return _moves_to(pose, previous)
        for move in (FORWARD, LEFT, RIGHT):
            next_pose = step_pose(squares, pose, move)
            if next_pose not in previous:
                previous[next_pose] = pose, move
                queue.append(next_pose)
    return None


def path_poses(cells: MapArray, start: Pose, moves: Sequence[int]) -> list[Pose]:
    """Return the poses of a path: at its start, and after each move."""
    return [*accumulate(moves, partial(step_pose, cells.tolist()), initial=start)]


def _moves_to(pose: Pose, previous: dict[Pose, tuple[Pose, int]]) -> list[int]:
    """Return the moves from the start to a pose. In `previous`, the move to the start is a stop."""
    moves: list[int] = []
    while previous[pose][1] != STOP:
        pose, move = previous[pose]
        moves.append(move)
    return moves[::-1]
