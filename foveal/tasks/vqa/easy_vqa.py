"""easy-VQA (Zhou 2019), as folders of images with a table of questions."""

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from random import Random

from foveal.core.parse_json import parse_json
from foveal.data.files.archives import NamedContents

VALIDATION_IMAGES = 200
"""The last images of the 4,000 training images, which become the split `valid`."""
QUESTION_COLUMNS = ("file_name", "question", "answer")
CHOICES_PER_QUESTION = 4
"""Choices of each row, one of which is correct."""


def easy_vqa(files: NamedContents) -> Iterator[tuple[str, bytes]]:
    """Yield the folders `train`, `valid` and `test`.

    The package has files such as `train/images/7.png` and `train/questions.json`, a list of [question,
    answer, image]. The wrong choices of a row are sampled from all other answers. Only `random()` of Python's
    generator is used.
    """
    questions: dict[str, list[tuple[str, str, int]]] = {"train": [], "valid": [], "test": []}
    images: dict[str, dict[int, bytes]] = {"train": {}, "test": {}}
    for name, content in files:
        path = PurePosixPath(name)
        if path.name == "questions.json":
            questions[path.parts[0]] = [tuple(row) for row in parse_json(content)]
        elif path.suffix == ".png":
            images[path.parts[0]][int(path.stem)] = content
    first = len(images["train"]) - VALIDATION_IMAGES
    questions["valid"] = [row for row in questions["train"] if row[2] >= first]
    questions["train"] = [row for row in questions["train"] if row[2] < first]
    answers, rng = sorted({row[1] for rows in questions.values() for row in rows}), Random(0)
    for split, rows in questions.items():
        for number in sorted({row[2] for row in rows}):
            yield f"{split}/{number}.png", images["test" if split == "test" else "train"][number]
        table_rows = (
            (f"{number}.png", question, answer, "|".join(sample_choices(answer, answers, rng)))
            for question, answer, number in rows
        )
        yield f"{split}/metadata.csv", csv_table((*QUESTION_COLUMNS, "choices"), table_rows)


def sample_choices(answer: str, answers: Iterable[str], rng: Random) -> list[str]:
    """Return the answer and other answers, in random order."""
    others = sorted((other for other in answers if other != answer), key=lambda _: rng.random())
    return sorted([answer, *others[: CHOICES_PER_QUESTION - 1]], key=lambda _: rng.random())


def csv_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> bytes:
    """Return a table as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    return text.getvalue().encode()
