"""Small labeled images and their training by the command."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.support.command_line import train_run

SMALL = (
    "data.image.size=12",
    "data.image.batch_size=16",
    "data.valid_fraction=0.2",
    "data.test_fraction=0.2",
    "schedule.warmup_steps=5",
    "training.evaluate_every=10",
)
PATCHES = (
    "--model",
    "vit",
    *(f"model.encoder.{one}" for one in ("width=32", "layers=1", "attention.heads=2")),
)
COLOURS = {"blue": (40, 60, 200), "red": (200, 50, 40)}


def write_images(folder: str = "squares", count: int = 60, seed: int = 0) -> str:
    """Write noisy images of two colors, of several sizes and modes."""
    draw = np.random.default_rng(seed)
    for number in range(count):
        name = list(COLOURS)[number % 2]
        height, width = draw.integers(10, 20, 2)
        pixels = np.clip(draw.normal(COLOURS[name], 25, (height, width, 3)), 0, 255).astype(np.uint8)
        path = Path(folder, name, f"{number}.{('png', 'jpg')[number % 3 == 0]}")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).convert("P" if number % 5 == 0 and path.suffix == ".png" else "RGB").save(
            path
        )
    return folder


def train(data: str, *more: object, run: str = "run", steps: int = 30) -> dict[str, Any]:
    return train_run(data, *SMALL, *more, run=run, steps=steps)
