"""Generated dialogs about scenes of shapes: rounds of questions, most of which refer to earlier rounds.

The dialogs are the same on every machine: of Python's generator only `random()` is used.
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
"""Cells of a scene's side, and pixels of a cell's side."""
MIN_THINGS, MAX_THINGS, ROUNDS = 3, 4, 6
"""Things in a scene, each with another color, and questions about the scene."""
SCENE_COUNTS = {"train": 30_000, "valid": 500, "test": 1000}
"""Scenes of each split."""
GridCell = tuple[int, int]
T = TypeVar("T")


@dataclass(frozen=True)
class Thing:
    color: str
    shape: str


Scene = dict[GridCell, Thing]
"""Things by row and column."""


def make_dialogs(log: Log) -> Iterator[tuple[str, bytes]]:
    """Yield the folders `train`, `valid` and `test`: images, and a table with a row for each question.

    The column `history` has the rounds before, questions and answers.
    """
    rng = Random(0)
    for part, count in SCENE_COUNTS.items():
        rows: list[tuple[str, str, str, str]] = []
        for number in log_progress(range(count), count, f"scenes ({part})", log):
            scene = random_scene(rng)
            yield f"{part}/{number}.png", _png(render_scene(scene, rng))
            history: list[str] = []
            for question, answer in random_dialog(scene, rng):
                rows.append((f"{number}.png", question, answer, " ".join(history)))
                history += [question, f"{answer}."]
        yield f"{part}/metadata.csv", csv_table((*QUESTION_COLUMNS, "history"), rows)


def random_scene(rng: Random) -> Scene:
    """Return some things in different cells."""
    places = _shuffled([(row, column) for row in range(GRID_SIDE) for column in range(GRID_SIDE)], rng)
    colors = _shuffled([*SHAPE_COLORS], rng)
    count = MIN_THINGS + int((MAX_THINGS - MIN_THINGS + 1) * rng.random())
    return {
        place: Thing(color, _random_choice(SHAPES, rng))
        for place, color in zip(places[:count], colors, strict=False)
    }


def random_dialog(scene: Scene, rng: Random) -> list[tuple[str, str]]:
    """Return questions and their answers.

    `it` is the thing whose color was named last. `and beside it?` repeats the question before for another
    neighbor.
    """
    place = _random_choice([*scene], rng)
    talk = [_standalone_question(scene, place, rng)]
    asked_beside = False
    while len(talk) < ROUNDS:
        kind, it = rng.random(), scene[place]
        if kind < 0.15:
            place = _random_choice([*scene], rng)
            talk.append(_standalone_question(scene, place, rng))
        elif kind < 0.25:
            talk.append(("what shape is it?", it.shape))
        elif kind < 0.35:
            shape = it.shape if rng.random() < 0.5 else _random_choice(SHAPES, rng)
            talk.append((f"is it a {shape}?", "yes" if shape == it.shape else "no"))
        elif kind < 0.45:
            talk.append(("where is it?", CELL_NAMES[place]))
        else:
            move, beside = _neighbor(scene, place, rng)
            short = asked_beside and rng.random() < 0.5
            question = f"and {move} it?" if short else f"what colour is the one {move} it?"
            talk.append((question, scene[beside].color if beside in scene else "none"))
            place = beside if beside in scene else place
        asked_beside = kind >= 0.45
    return talk


def _standalone_question(scene: Scene, place: GridCell, rng: Random) -> tuple[str, str]:
    """Return a question without a reference to earlier ones.

    The question asks about the shape, position or color of a thing.
    """
    thing = scene[place]
    alone = sum(other.shape == thing.shape for other in scene.values()) == 1
    kind = int((4 if alone else 3) * rng.random())
    return (
        (f"what shape is the {thing.color} one?", thing.shape),
        (f"where is the {thing.color} one?", CELL_NAMES[place]),
        (f"what colour is the one at the {CELL_NAMES[place]}?", thing.color),
        (f"what colour is the only {thing.shape}?", thing.color),
    )[kind]


def _neighbor(scene: Scene, place: GridCell, rng: Random) -> tuple[str, GridCell]:
    """Return a direction and the cell there, more often a cell with something in it."""
    beside = {
        move: ((place[0] + down) % GRID_SIDE, (place[1] + across) % GRID_SIDE)
        for move, (down, across) in NEIGHBOR_DIRECTIONS.items()
    }
    filled = [move for move, cell in beside.items() if cell in scene]
    move = _random_choice(filled if filled and rng.random() < 0.75 else [*NEIGHBOR_DIRECTIONS], rng)
    return move, beside[move]


def render_scene(scene: Scene, rng: Random) -> NDArray[np.uint8]:
    """Return an image (H, W, 3) of a scene: on a light ground, each thing in about its color and somewhere in
    its cell."""
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
