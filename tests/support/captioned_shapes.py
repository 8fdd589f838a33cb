"""Small images of shapes with a text each, and their training by the command."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from tests.support.command_line import train_run

COLOURS = {"red": (220, 40, 40), "green": (40, 180, 60), "blue": (50, 70, 220)}
SHAPES = ("bar", "post")
SMALL = (
    "data.image.size=12",
    "data.image.batch_size=20",
    "data.augment.crop=none",
    "data.tokenizer=word",
    "data.valid_fraction=0.1",
    "data.test_fraction=0.1",
    "model.width=64",
    "model.embedding_width=0",
    "model.layers=1",
    "model.dropout=0",
    "task.label_smoothing=0",
    "optimizer.name=muon",
    "optimizer.lr=1e-2",
    "schedule.warmup_steps=5",
    "training.ema_decay=0",
    "training.evaluate_every=20",
)


def caption(number: int) -> str:
    return f"a {[*COLOURS][number % 3]} {SHAPES[number // 3 % 2]}"


def write_shapes(folder: str = "shapes", count: int = 120, seed: int = 0) -> str:
    """Write horizontal and vertical bars of three colors on a dark noisy background, each with a caption."""
    draw, rows = np.random.default_rng(seed), ["file_name,text"]
    Path(folder).mkdir()
    for number in range(count):
        _, colour, shape = caption(number).split()
        picture = Image.fromarray(draw.integers(0, 60, (12, 12, 3), np.uint8))
        x, y = draw.integers(1, 4, 2).tolist()
        sides = (7, 2) if shape == "bar" else (2, 7)
        ImageDraw.Draw(picture).rectangle((x, y, x + sides[0], y + sides[1]), COLOURS[colour])
        picture.save(f"{folder}/{number}.png")
        rows.append(f"{number}.png,{caption(number)}")
    Path(folder, "metadata.csv").write_text("\n".join(rows))
    return folder


def train(data: str, *more: object, run: str = "run", steps: int) -> dict[str, Any]:
    return train_run(data, *SMALL, *more, run=run, steps=steps)
