"""Talks about scenes: answers follow from the scene and what was said, the same everywhere; and easy-VQA."""

import csv
import hashlib
import io
import json
import re
from random import Random

import numpy as np
import pytest
from PIL import Image

from foveal.tasks.vqa import shape_dialogs
from foveal.tasks.vqa.easy_vqa import VALIDATION_IMAGES, easy_vqa
from foveal.tasks.vqa.shape_dialogs import (
    CELL_NAMES,
    NEIGHBOR_DIRECTIONS,
    ROUNDS,
    SHAPE_COLORS,
    SHAPES,
    Scene,
    make_dialogs,
    random_dialog,
    random_scene,
    render_scene,
)


def answered(scene: Scene, said: str, question: str) -> str:
    """By reading what was said from its end, with no memory of how the talk was made."""
    by_colour = {thing.color: place for place, thing in scene.items()}
    if named := re.fullmatch(r"what shape is the (\w+) one\?", question):
        return scene[by_colour[named[1]]].shape
    if named := re.fullmatch(r"where is the (\w+) one\?", question):
        return CELL_NAMES[by_colour[named[1]]]
    if placed := re.fullmatch(r"what colour is the one at the (.*)\?", question):
        (place,) = (place for place, name in CELL_NAMES.items() if name == placed[1])
        return scene[place].color
    if only := re.fullmatch(r"what colour is the only (\w+)\?", question):
        (thing,) = (thing for thing in scene.values() if thing.shape == only[1])
        return thing.color
    last = [word for word in re.findall(r"\w+", said) if word in SHAPE_COLORS][-1]
    row, column = by_colour[last]
    if question == "what shape is it?":
        return scene[row, column].shape
    if question == "where is it?":
        return CELL_NAMES[row, column]
    if shape := re.fullmatch(r"is it a (\w+)\?", question):
        return "yes" if scene[row, column].shape == shape[1] else "no"
    if not (moved := re.fullmatch(r"what colour is the one (.*) it\?", question)):
        moved = re.fullmatch(r"and (.*) it\?", question)
        *_, before = re.findall(r"[^.?]*\?", said)
        assert "one" in before or before.strip().startswith("and")
    assert moved is not None
    down, across = NEIGHBOR_DIRECTIONS[moved[1]]
    beside = (row + down) % 2, (column + across) % 2
    return scene[beside].color if beside in scene else "none"


def test_every_answer_follows_from_the_scene_and_what_was_said() -> None:
    chance, kinds = Random(1), set()
    for _ in range(400):
        scene = random_scene(chance)
        assert len({thing.color for thing in scene.values()}) == len(scene)
        said = ""
        talk = random_dialog(scene, chance)
        assert len(talk) == ROUNDS
        for question, answer in talk:
            assert answered(scene, said, question) == answer
            said += f" {question} {answer}."
            kinds.add(
                re.sub(
                    "|".join((*SHAPE_COLORS, *SHAPES, *NEIGHBOR_DIRECTIONS, *CELL_NAMES.values())),
                    "X",
                    question,
                )
            )
    assert len(kinds) == 9


def test_things_are_drawn_in_their_cells() -> None:
    chance = Random(2)
    for _ in range(50):
        scene = random_scene(chance)
        picture = render_scene(scene, chance).astype(int)
        for row in range(2):
            for column in range(2):
                inner = picture[16 * row + 7 : 16 * row + 10, 16 * column + 7 : 16 * column + 10].reshape(
                    -1, 3
                )
                colour = SHAPE_COLORS[scene[row, column].color] if (row, column) in scene else (240, 240, 240)
                assert abs(np.median(inner, 0) - colour).max() <= 15


def test_the_same_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what they ought to be, but what runs and figures of others are based on."""
    monkeypatch.setattr(shape_dialogs, "SCENE_COUNTS", {"train": 5, "valid": 2, "test": 2})
    files = dict(make_dialogs(print))
    assert len(files) == 9 + 3
    rows = [*csv.DictReader(io.StringIO(files["train/metadata.csv"].decode()))]
    assert len(rows) == 5 * ROUNDS
    assert rows[0]["history"] == ""
    assert rows[2]["history"] == " ".join(f"{row['question']} {row['answer']}." for row in rows[:2])
    pixels = b"".join(np.asarray(Image.open(io.BytesIO(files[f"train/{n}.png"]))).tobytes() for n in range(5))
    found = hashlib.sha256(pixels + files["test/metadata.csv"]).hexdigest()[:16]
    assert found == "156f0622911dacf1"


def test_easy_vqa_keeps_its_test_and_holds_the_last_pictures() -> None:
    count = VALIDATION_IMAGES + 3
    questions = [["what shape is it?", "circle", n] for n in range(count) for _ in range(2)]
    files = [(f"train/images/{n}.png", f"{n}".encode()) for n in range(count)]
    files += [("test/images/0.png", b"test"), ("answers.txt", b"circle"), ("train/.DS_Store", b"")]
    files += [("train/questions.json", json.dumps(questions).encode())]
    more = [[f"what {n}?", f"answer {n}", 0] for n in range(9)]
    files += [("test/questions.json", json.dumps([["is it, red?", "no", 0], *more]).encode())]
    found = dict(easy_vqa(files))
    tables = {
        part: [*csv.reader(io.StringIO(found.pop(f"{part}/metadata.csv").decode()))]
        for part in ("train", "valid", "test")
    }
    assert [len(rows) for rows in tables.values()] == [7, 2 * VALIDATION_IMAGES + 1, 11]
    assert tables["test"][0] == ["file_name", "question", "answer", "choices"]
    assert tables["test"][1][:3] == ["0.png", "is it, red?", "no"]
    assert tables["valid"][1][0] == "3.png"
    places = [0] * 4
    for rows in tables.values():
        for *_, answer, choices in rows[1:]:
            assert len(set(choices.split("|"))) == 4
            places[choices.split("|").index(answer)] += 1
    assert min(places) > 70, "the right one may stand anywhere"
    assert found["test/0.png"] == b"test"
    assert len(found) == count + 1
