"""Talks about drawn scenes: rounds of questions, most of which mean what was spoken of before.

They are the same on every machine: of Python's generator only `random()` is used.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from foveal.core.log import Say, counted
from foveal.tasks.vqa.easy_vqa import COLUMNS, table

PALETTE = {
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
PLACES = {(0, 0): "top left", (0, 1): "top right", (1, 0): "bottom left", (1, 1): "bottom right"}
MOVES = {"beside": (0, 1), "above or below": (1, 0)}
CELLS, CELL = 2, 16
"""To each side of a scene, and pixels to each side of a cell."""
FEWEST, MOST, ROUNDS = 3, 4, 6
"""Things in a scene, each of a colour of its own; questions about it."""
COUNTS = {"train": 30_000, "valid": 500, "test": 1000}
"""Scenes."""
Place = tuple[int, int]
T = TypeVar("T")


@dataclass(frozen=True)
class Thing:
    colour: str
    shape: str


Scene = dict[Place, Thing]
"""By its row and column."""


def dialogs(say: Say) -> Iterator[tuple[str, bytes]]:
    """The folders `train`, `valid` and `test`: pictures, and a table with a row for each question. Its
    `history` are the rounds before, questions and answers."""
    chance = Random(0)
    for part, count in COUNTS.items():
        rows: list[tuple[str, str, str, str]] = []
        for number in counted(range(count), count, f"scenes ({part})", say):
            scene = a_scene(chance)
            yield f"{part}/{number}.png", _png(drawn(scene, chance))
            said: list[str] = []
            for question, answer in a_talk(scene, chance):
                rows.append((f"{number}.png", question, answer, " ".join(said)))
                said += [question, f"{answer}."]
        yield f"{part}/metadata.csv", table((*COLUMNS, "history"), rows)


def a_scene(chance: Random) -> Scene:
    """Some things in different cells."""
    places = _mixed([(row, column) for row in range(CELLS) for column in range(CELLS)], chance)
    colours = _mixed([*PALETTE], chance)
    count = FEWEST + int((MOST - FEWEST + 1) * chance.random())
    return {
        place: Thing(colour, _one_of(SHAPES, chance))
        for place, colour in zip(places[:count], colours, strict=False)
    }


def a_talk(scene: Scene, chance: Random) -> list[tuple[str, str]]:
    """Questions and their answers. `it` is the thing whose colour was named last; `and beside it?` asks what
    the question before it asked, of another neighbour."""
    place = _one_of([*scene], chance)
    talk = [_named(scene, place, chance)]
    asked_beside = False
    while len(talk) < ROUNDS:
        kind, it = chance.random(), scene[place]
        if kind < 0.15:
            place = _one_of([*scene], chance)
            talk.append(_named(scene, place, chance))
        elif kind < 0.25:
            talk.append(("what shape is it?", it.shape))
        elif kind < 0.35:
            shape = it.shape if chance.random() < 0.5 else _one_of(SHAPES, chance)
            talk.append((f"is it a {shape}?", "yes" if shape == it.shape else "no"))
        elif kind < 0.45:
            talk.append(("where is it?", PLACES[place]))
        else:
            move, beside = _neighbour(scene, place, chance)
            short = asked_beside and chance.random() < 0.5
            question = f"and {move} it?" if short else f"what colour is the one {move} it?"
            talk.append((question, scene[beside].colour if beside in scene else "none"))
            place = beside if beside in scene else place
        asked_beside = kind >= 0.45
    return talk


def _named(scene: Scene, place: Place, chance: Random) -> tuple[str, str]:
    """A question that needs no history: of the thing's colour, place, or shape if no other thing has it."""
    thing = scene[place]
    alone = sum(other.shape == thing.shape for other in scene.values()) == 1
    kind = int((4 if alone else 3) * chance.random())
    return (
        (f"what shape is the {thing.colour} one?", thing.shape),
        (f"where is the {thing.colour} one?", PLACES[place]),
        (f"what colour is the one at the {PLACES[place]}?", thing.colour),
        (f"what colour is the only {thing.shape}?", thing.colour),
    )[kind]


def _neighbour(scene: Scene, place: Place, chance: Random) -> tuple[str, Place]:
    """A direction and the cell there, more often one with something in it."""
    beside = {
        move: ((place[0] + down) % CELLS, (place[1] + across) % CELLS)
        for move, (down, across) in MOVES.items()
    }
    filled = [move for move, cell in beside.items() if cell in scene]
    move = _one_of(filled if filled and chance.random() < 0.75 else [*MOVES], chance)
    return move, beside[move]


def drawn(scene: Scene, chance: Random) -> NDArray[np.uint8]:
    """(H, W, 3): on a light ground, each thing of about its colour and somewhere in its cell."""
    side = CELLS * CELL
    picture = np.full((side, side, 3), 240, np.uint8)
    y, x = np.mgrid[:side, :side]
    for (row, column), thing in scene.items():
        radius = 5.0 + int(2 * chance.random())
        top, left = (CELL * cell + CELL / 2 - 0.5 + 3 * (chance.random() - 0.5) for cell in (row, column))
        down, across = (y - top) / radius, (x - left) / radius
        inside = {
            "circle": down**2 + across**2 <= 1,
            "square": np.maximum(abs(down), abs(across)) <= 0.9,
            "triangle": (abs(down) <= 1) & (abs(across) <= (down + 1) / 2),
        }[thing.shape]
        shade = [level + int(30 * chance.random()) - 15 for level in PALETTE[thing.colour]]
        picture[inside] = np.clip(shade, 0, 255)
    return picture


def _png(picture: NDArray[np.uint8]) -> bytes:
    from PIL import Image

    content = io.BytesIO()
    Image.fromarray(picture).save(content, "PNG")
    return content.getvalue()


def _one_of(things: Sequence[T], chance: Random) -> T:
    return things[int(len(things) * chance.random())]


def _mixed(things: Sequence[T], chance: Random) -> list[T]:
    return sorted(things, key=lambda _: chance.random())
