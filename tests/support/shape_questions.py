"""Questions about small images of shapes."""

import csv
from pathlib import Path
from typing import Any

import torch

from tests.support.captioned_shapes import COLOURS, SHAPES, caption, write_shapes
from tests.support.command_line import train_run
from tests.support.saved_weights import saved_weights

SMALL = (
    "data.image.size=12",
    "data.image.batch_size=20",
    "data.valid_fraction=0.1",
    "data.test_fraction=0.1",
    "task.question.width=32",
    "task.fusion.width=32",
    "task.fusion.layers=1",
    "optimizer.lr=1e-2",
    "schedule.warmup_steps=5",
    "training.evaluate_every=20",
)


def rows_of(number: int) -> list[dict[str, str]]:
    """Return the questions for color and shape, and a question for the first answer, which the picture does
    not show."""
    _, colour, shape = caption(number).split()
    said = [*COLOURS][number * 7 % 5 % 3]
    asked = (
        ("what colour is it?", colour, COLOURS, ""),
        ("what shape is it?", shape, SHAPES, f"which one? {said}."),
        ("which one was it?", said, COLOURS, f"which one? {said}. what shape is it? {shape}."),
    )
    return [
        {
            "file_name": f"{number}.png",
            "question": question,
            "answer": answer,
            "choices": "|".join(choices),
            "history": history,
        }
        for question, answer, choices, history in asked
    ]


def write_table(folder: str, count: int, *columns: str) -> None:
    rows = [{name: row[name] for name in columns} for number in range(count) for row in rows_of(number)]
    with Path(folder, "metadata.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, columns)
        table.writeheader()
        table.writerows(rows)


def write_questions(folder: str = "shapes", *more: str, count: int = 120) -> str:
    write_shapes(folder, count)
    write_table(folder, count, "file_name", "question", "answer", *more)
    return folder


def check_same_image_encoder(labels: str, answers: str) -> None:
    """Check that a run of answers reads images with the network and the standardization of a run
    of labels."""
    alone, joined = saved_weights(labels), saved_weights(answers)
    own = [name for name in alone if name.startswith("encoder.") and name.endswith((".weight", ".bias"))]
    assert own
    for name in own:
        assert torch.allclose(alone[name], joined[name.replace("encoder.", "encoder.parts.source.")]), name
    first, second = (Path(run, "inputs/channels.json").read_text() for run in (labels, answers))
    assert first == second


def train(data: str, *more: object, run: str = "run", steps: int) -> dict[str, Any]:
    return train_run(data, *SMALL, *more, run=run, steps=steps)
