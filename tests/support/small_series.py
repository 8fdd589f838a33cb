"""Small files of series."""

from pathlib import Path

import numpy as np

SMALL = (
    "model.encoder.width=16",
    "model.encoder.layers=1",
    "model.encoder.dropout=0",
    "model.dropout=0",
    "data.batch_tokens=200",
    "data.valid_fraction=0.2",
    "data.test_fraction=0.2",
    "training.evaluate_every=10",
    "optimizer.lr=1e-2",
)
RISING = "\n".join(["@problemName Slopes", "@univariate false", "@classLabel true up down", "@data", ""])


def slopes(count: int = 60, seed: int = 0) -> list[tuple[np.ndarray, str]]:
    """Return two noisy channels, of which the first rises or falls."""
    draw, found = np.random.default_rng(seed), []
    for number in range(count):
        steps, name = draw.integers(5, 12), ("up", "down")[number % 2]
        values = draw.normal(size=(steps, 2)) * 0.2 + 30
        values[:, 0] += np.arange(steps) * (1 if name == "up" else -1)
        found.append((values, name))
    return found


def write_ts(path: str = "slopes.ts", **given: int) -> str:
    rows = (
        ":".join([*(",".join(map(str, channel)) for channel in values.T), name])
        for values, name in slopes(**given)
    )
    Path(path).write_text(RISING + "".join(f"{row}\n" for row in rows))
    return path


def write_steps(path: str = "signs.npz", count: int = 60) -> str:
    """Write one channel, with a label for each step: whether the previous value is above 0."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(4, 10, count)
    x = draw.normal(size=(lengths.sum(), 1))
    y = np.where((x > 0) & (np.roll(x, 1, 0) > 0), "both", "not")[:, 0]
    np.savez(path, x=x, y=y, lengths=lengths)
    return path
