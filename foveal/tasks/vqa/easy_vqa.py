"""easy-VQA (Zhou 2019) as folders of pictures with a table of questions each."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from random import Random

from foveal.data.files.archives import NamedContents

VALIDATION_IMAGES = 200
"""Of the 4,000 pictures to train on the last so many are for validation."""
QUESTION_COLUMNS = ("file_name", "question", "answer")
CHOICES_PER_QUESTION = 4
"""Answers of each row to choose among, one of them right."""


def easy_vqa(files: NamedContents) -> Iterator[tuple[str, bytes]]:
    """The folders `train`, `valid` and `test`, from files such as `train/images/7.png` and
    `train/questions.json`, a list of [question, answer, picture]. The wrong choices of a row are drawn from
    all other answers; of Python's generator only `random()` is used."""
    questions: dict[str, list[tuple[str, str, int]]] = {"train": [], "valid": [], "test": []}
    pictures: dict[str, dict[int, bytes]] = {"train": {}, "test": {}}
    for name, content in files:
        path = PurePosixPath(name)
        if path.name == "questions.json":
            questions[path.parts[0]] = [tuple(row) for row in json.loads(content)]
        elif path.suffix == ".png":
            pictures[path.parts[0]][int(path.stem)] = content
    first = len(pictures["train"]) - VALIDATION_IMAGES
    questions["valid"] = [row for row in questions["train"] if row[2] >= first]
    questions["train"] = [row for row in questions["train"] if row[2] < first]
    known, chance = sorted({row[1] for rows in questions.values() for row in rows}), Random(0)
    for part, rows in questions.items():
        for number in sorted({row[2] for row in rows}):
            yield f"{part}/{number}.png", pictures["test" if part == "test" else "train"][number]
        named = (
            (f"{number}.png", question, answer, "|".join(sample_choices(answer, known, chance)))
            for question, answer, number in rows
        )
        yield f"{part}/metadata.csv", csv_table((*QUESTION_COLUMNS, "choices"), named)


def sample_choices(answer: str, known: Iterable[str], rng: Random) -> list[str]:
    """The answer among others, in an order that says nothing."""
    others = sorted((other for other in known if other != answer), key=lambda _: rng.random())
    return sorted([answer, *others[: CHOICES_PER_QUESTION - 1]], key=lambda _: rng.random())


def csv_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> bytes:
    """As CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    return text.getvalue().encode()
