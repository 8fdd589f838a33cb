"""Computed dialogs about drawn scenes: rounds of questions, most of which refer to earlier rounds.

The dialogs are the same on every machine, since only `random()` of Python's generator is used.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from foveal.core.log import Log, log_progress
from foveal.tasks.vqa.easy_vqa import QUESTION_COLUMNS, csv_table

SHAPE_COLORS = {
    "red": (220, 30, 30),
    "green": (30, 160, 50),
    "blue": (30, 60, 220),
    "yellow": (235, 215, 20),
    "gray": (130, 130, 130),
    "teal": (20, 180, 180),
    "brown": (130, 75, 25),
    "black": (15, 15, 15),
}
SHAPES = ("circle", "square", "triangle")
CELL_NAMES = {(0, 0): "top left", (0, 1): "top right", (1, 0): "bottom left", (1, 1): "bottom right"}
NEIGHBOR_DIRECTIONS = {"beside": (0, 1), "above or below": (1, 0)}
GRID_SIDE, CELL_PIXELS = 2, 16
"""Side of a scene in cells, and side of a cell in pixels."""
MIN_THINGS, MAX_THINGS, ROUNDS = 3, 4, 6
"""Things in a scene, which have different colors, and questions about the scene."""
SCENE_COUNTS = {"train": 30_000, "valid": 500, "test": 1000}
"""Number of scenes of each split."""
GridCell = tuple[int, int]
T = TypeVar("T")


@dataclass(frozen=True)
class Thing:
    """A colored shape."""

    color: str
    shape: str


Scene = dict[GridCell, Thing]
"""Things by row and column."""


def make_dialogs(log: Log) -> Iterator[tuple[str, bytes]]:
    """Yield the folders `train`, `valid` and `test`: images, and a table with a row for each question.

    The column `history` has the questions and answers of the earlier rounds.
    """
    rng = Random(0)
    for split, count in SCENE_COUNTS.items():
        rows: list[tuple[str, str, str, str]] = []
        for number in log_progress(range(count), count, f"scenes ({split})", log):
            scene = random_scene(rng)
            yield f"{split}/{number}.png", _png(render_scene(scene, rng))
            history: list[str] = []
            for question, answer in random_dialog(scene, rng):
                rows.append((f"{number}.png", question, answer, " ".join(history)))
                history += [question, f"{answer}."]
        yield f"{split}/metadata.csv", csv_table((*QUESTION_COLUMNS, "history"), rows)


def random_scene(rng: Random) -> Scene:
    """Return a scene with things in different cells."""
    cells = _shuffled([(row, column) for row in range(GRID_SIDE) for column in range(GRID_SIDE)], rng)
    colors = _shuffled([*SHAPE_COLORS], rng)
    count = MIN_THINGS + int((MAX_THINGS - MIN_THINGS + 1) * rng.random())
    return {
        cell: Thing(color, _random_choice(SHAPES, rng))
        for cell, color in zip(cells[:count], colors, strict=False)
    }


def random_dialog(scene: Scene, rng: Random) -> list[tuple[str, str]]:
    """Return questions and their answers.

    `it` is the thing whose color was named last. `and beside it?` repeats the previous question for another
    neighbor.
    """
    cell = _random_choice([*scene], rng)
    dialog = [_standalone_question(scene, cell, rng)]
    asked_neighbor = False
    while len(dialog) < ROUNDS:
        draw, thing = rng.random(), scene[cell]
        if draw < 0.15:
            cell = _random_choice([*scene], rng)
            dialog.append(_standalone_question(scene, cell, rng))
        elif draw < 0.25:
            dialog.append(("what shape is it?", thing.shape))
        elif draw < 0.35:
            shape = thing.shape if rng.random() < 0.5 else _random_choice(SHAPES, rng)
            dialog.append((f"is it a {shape}?", "yes" if shape == thing.shape else "no"))
        elif draw < 0.45:
            dialog.append(("where is it?", CELL_NAMES[cell]))
        else:
            direction, neighbor = _neighbor(scene, cell, rng)
            is_short = asked_neighbor and rng.random() < 0.5
            question = f"and {direction} it?" if is_short else f"what colour is the one {direction} it?"
            dialog.append((question, scene[neighbor].color if neighbor in scene else "none"))
            cell = neighbor if neighbor in scene else cell
        asked_neighbor = draw >= 0.45
    return dialog


def _standalone_question(scene: Scene, cell: GridCell, rng: Random) -> tuple[str, str]:
    """Return a question that needs no history, and its answer.

    The question names the thing by color, by cell, or by its shape if no other thing has this shape.
    """
    thing = scene[cell]
    is_unique = sum(other.shape == thing.shape for other in scene.values()) == 1
    index = int((4 if is_unique else 3) * rng.random())
    return (
        (f"what shape is the {thing.color} one?", thing.shape),
        (f"where is the {thing.color} one?", CELL_NAMES[cell]),
        (f"what colour is the one at the {CELL_NAMES[cell]}?", thing.color),
        (f"what colour is the only {thing.shape}?", thing.color),
    )[index]


def _neighbor(scene: Scene, cell: GridCell, rng: Random) -> tuple[str, GridCell]:
    """Return a direction and the neighbor in that direction. Neighbors with a thing are more frequent."""
    neighbors = {
        direction: ((cell[0] + down) % GRID_SIDE, (cell[1] + across) % GRID_SIDE)
        for direction, (down, across) in NEIGHBOR_DIRECTIONS.items()
    }
    filled = [direction for direction, neighbor in neighbors.items() if neighbor in scene]
    directions = filled if filled and rng.random() < 0.75 else [*NEIGHBOR_DIRECTIONS]
    direction = _random_choice(directions, rng)
    return direction, neighbors[direction]


def render_scene(scene: Scene, rng: Random) -> NDArray[np.uint8]:
    """Render a scene (H, W, 3): things on a light background, with slightly random colors and positions."""
    side = GRID_SIDE * CELL_PIXELS
    image = np.full((side, side, 3), 240, np.uint8)
    y, x = np.mgrid[:side, :side]
    for (row, column), thing in scene.items():
        radius = 5.0 + int(2 * rng.random())
        top, left = (
            CELL_PIXELS * cell + CELL_PIXELS / 2 - 0.5 + 3 * (rng.random() - 0.5) for cell in (row, column)
        )
        down, across = (y - top) / radius, (x - left) / radius
        inside = {
            "circle": down**2 + across**2 <= 1,
            "square": np.maximum(abs(down), abs(across)) <= 0.9,
            "triangle": (abs(down) <= 1) & (abs(across) <= (down + 1) / 2),
        }[thing.shape]
        shade = [level + int(30 * rng.random()) - 15 for level in SHAPE_COLORS[thing.color]]
        image[inside] = np.clip(shade, 0, 255)
    return image


def _png(image: NDArray[np.uint8]) -> bytes:
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(image).save(content, "PNG")
    return content.getvalue()


def _random_choice(things: Sequence[T], rng: Random) -> T:
    return things[int(len(things) * rng.random())]


def _shuffled(things: Sequence[T], rng: Random) -> list[T]:
    return sorted(things, key=lambda _: rng.random())
