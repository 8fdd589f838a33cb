"""The world of squares: moves by hand, views as the turned map, shortest ways against all ways."""

from random import Random

import numpy as np
import pytest
import torch

from foveal.tasks.navigation.generated_episodes import random_map
from foveal.tasks.navigation.grid_world import (
    FORWARD,
    LEFT,
    MAP_MARGIN,
    RIGHT,
    STOP,
    SYMBOLS,
    THINGS,
    TILE_PIXELS,
    TILES,
    VIEW_SIDE,
    MapArray,
    Pose,
    moves_to_text,
    parse_map,
    parse_moves,
    path_poses,
    render_map,
    render_views,
    rollout,
    shortest_path,
    step_pose,
    step_poses,
)

NORTH, EAST, SOUTH, WEST = range(4)
ROOM = ["#####", "#.a.#", "#...#", "###.#"]
BY_HAND = [
    ((1, 1, NORTH), LEFT, (1, 1, WEST)),
    ((1, 1, NORTH), RIGHT, (1, 1, EAST)),
    ((1, 1, WEST), RIGHT, (1, 1, NORTH)),
    ((1, 1, SOUTH), STOP, (1, 1, SOUTH)),
    ((1, 1, SOUTH), FORWARD, (2, 1, SOUTH)),
    ((2, 1, EAST), FORWARD, (2, 2, EAST)),
    ((2, 2, WEST), FORWARD, (2, 1, WEST)),
    ((2, 1, NORTH), FORWARD, (1, 1, NORTH)),
    ((1, 1, NORTH), FORWARD, (1, 1, NORTH)),  # a wall
    ((1, 1, EAST), FORWARD, (1, 1, EAST)),  # a table
    ((3, 3, SOUTH), FORWARD, (3, 3, SOUTH)),  # the end of the map
]


def within(pose: Pose) -> Pose:
    """With the margin."""
    row, column, heading = pose
    return row + MAP_MARGIN, column + MAP_MARGIN, heading


def on_floor(cells: MapArray) -> list[Pose]:
    return [
        (row, column, heading) for row, column in np.argwhere(cells == 0).tolist() for heading in range(4)
    ]


@pytest.mark.parametrize(("before", "move", "after"), BY_HAND)
def test_moves_by_hand(before: Pose, move: int, after: Pose) -> None:
    cells = parse_map(ROOM)
    assert step_pose(cells.tolist(), within(before), move) == within(after)
    many = step_poses(torch.from_numpy(cells)[None], torch.tensor([within(before)]), torch.tensor([move]))
    assert many.tolist() == [[*within(after)]]


def test_many_moves_at_once_are_those_of_one_by_one() -> None:
    chance = Random(1)
    maps = [parse_map(random_map(chance)) for _ in range(3)]
    cells = torch.from_numpy(np.stack(maps))
    starts = [on_floor(one)[int(20 * chance.random())] for one in maps]
    moves = [[int(4 * chance.random()) for _ in range(60)] for _ in maps]
    together = rollout(cells, torch.tensor(starts), torch.tensor(moves))
    for number, one in enumerate(maps):
        assert [tuple(pose) for pose in together[number].tolist()] == path_poses(
            one, starts[number], moves[number]
        )
    assert all(
        one[row, column] == 0 for one, poses in zip(maps, together, strict=True) for row, column, _ in poses
    )


def test_a_view_is_the_map_turned_and_cut() -> None:
    """By turning the whole map so that one looks up."""
    cells = parse_map(random_map(Random(2)))
    poses = on_floor(cells)
    seen = render_views(torch.from_numpy(cells)[None], torch.tensor([poses]))[0]
    assert seen.shape == (len(poses), 3, VIEW_SIDE * TILE_PIXELS, VIEW_SIDE * TILE_PIXELS)
    assert seen.dtype == torch.uint8
    for (row, column, heading), pixels in zip(poses, seen.numpy(), strict=True):
        here = np.zeros(cells.shape, bool)
        here[row, column] = True
        ((down, right),) = np.argwhere(np.rot90(here, heading))
        part = np.rot90(cells, heading)[
            down - VIEW_SIDE + 1 : down + 1, right - VIEW_SIDE // 2 : right + VIEW_SIDE // 2 + 1
        ]
        drawn = np.concatenate([np.concatenate([*TILES[line]], 1) for line in part])
        np.testing.assert_array_equal(pixels.transpose(1, 2, 0), drawn)


def test_every_symbol_looks_different() -> None:
    assert len(SYMBOLS) == len(THINGS) + 2 == 14
    assert len({tile.tobytes() for tile in TILES}) == len(SYMBOLS)
    drawn = render_map(parse_map(ROOM))
    assert drawn.shape == (4 * TILE_PIXELS, 5 * TILE_PIXELS, 3)
    np.testing.assert_array_equal(
        drawn[TILE_PIXELS : 2 * TILE_PIXELS, 2 * TILE_PIXELS : 3 * TILE_PIXELS], TILES[SYMBOLS.index("a")]
    )


def test_the_shortest_way_is_as_long_as_the_first_of_all_ways_that_arrives() -> None:
    """Every pose that any n moves can lead to, n = 0, 1, 2 ..."""
    chance = Random(3)
    for _ in range(4):
        cells = parse_map(random_map(chance))
        squares, poses = cells.tolist(), on_floor(cells)
        for _ in range(5):
            start, (row, column, _) = (poses[int(len(poses) * chance.random())] for _ in range(2))
            reached, seen, count = {start}, 0, 0
            while not any(pose[:2] == (row, column) for pose in reached) and len(reached) > seen:
                seen = len(reached)
                reached |= {
                    step_pose(squares, pose, move) for pose in reached for move in (LEFT, RIGHT, FORWARD)
                }
                count += 1
            way = shortest_path(cells, start, (row, column))
            if way is None:
                assert len(reached) == seen, "there is a way"
            else:
                assert len(way) == count
                assert path_poses(cells, start, way)[-1][:2] == (row, column)


def test_a_goal_behind_walls_has_no_way_and_here_is_none_to_go() -> None:
    cells = parse_map(["#####", "#.#.#", "#####"])
    assert shortest_path(cells, within((1, 1, NORTH)), (1 + MAP_MARGIN, 3 + MAP_MARGIN)) is None
    assert shortest_path(cells, within((1, 1, NORTH)), (1 + MAP_MARGIN, 1 + MAP_MARGIN)) == []


def test_moves_are_read_as_they_are_written() -> None:
    assert parse_moves(moves_to_text([LEFT, FORWARD, STOP])) == [LEFT, FORWARD, STOP]
    with pytest.raises(ValueError, match="not in tuple"):
        parse_moves("left jump")
