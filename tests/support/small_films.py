"""Small clips and their training by the command."""

from typing import Any

import numpy as np

SIDE = 16
SMALL = (
    f"data.image.size={SIDE}",
    "data.batch_tokens=240",
    "data.valid_fraction=0.15",
    "data.test_fraction=0.15",
    "model.encoder.width=16",
    "model.dropout=0",
    "training.evaluate_every=20",
    "optimizer.name=adamw",
    "optimizer.lr=1e-2",
    "schedule.warmup_steps=5",
    "training.ema_decay=0",
)
FRAMES = ("model.encoder.layers=1", "model.encoder.network=lenet-5", "model.encoder.stem=small")
NARRATE = ("--task", "video-captioning", *FRAMES, "model.width=16", "model.embedding_width=8")


def film(number: int) -> tuple[np.ndarray, list[str]]:
    """Return a block that moves across or down and back, and the axis of each frame (`still` for
    the first)."""
    draw = np.random.default_rng(number)
    frames = np.zeros((int(draw.integers(3, 6)), SIDE, SIDE), np.uint8)
    axis, place = number % 2, draw.integers(0, 4, 2)
    for frame in frames:
        frame[place[0] : place[0] + 4, place[1] : place[1] + 4] = 200
        place[axis] += 1
    return frames, ["still", *[("down", "across")[axis]] * (len(frames) - 1)]


def write_films(path: str = "films.npz", count: int = 60, **more: Any) -> str:
    films = [film(number) for number in range(count)]
    clips, labels = np.zeros((count, 5, SIDE, SIDE), np.uint8), np.full((count, 5), "", "U6")
    for number, (frames, names) in enumerate(films):
        clips[number, : len(frames)], labels[number, : len(frames)] = frames, names
    arrays = {
        "lengths": np.array([len(frames) for frames, _ in films]),
        "label": labels[:, 1],
        "labels": labels,
        "text": np.array([f"it goes {name}" for name in labels[:, 1]]),
    }
    np.savez(path, clips=clips, **(arrays | more))
    return path
