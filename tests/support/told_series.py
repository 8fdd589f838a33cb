"""Small series with a text each, as JSON lines, and small models of them."""

import json
from pathlib import Path

import numpy as np

SMALL = (
    "data.max_length=64",
    "data.batch_tokens=600",
    "data.valid_fraction=0.2",
    "data.test_fraction=0.2",
    "model.width=24",
    "model.embedding_width=8",
    "model.encoder.layers=1",
    "model.encoder.width=24",
    "model.dropout=0",
    "model.encoder.dropout=0",
    "optimizer.lr=1e-2",
    "schedule.warmup_steps=5",
    "training.evaluate_every=40",
)
WAYS = ("goes up", "goes down", "stays level")


def write_series(path: str, count: int = 60) -> dict[str, str]:
    """Write series that rise, fall or neither, as JSON lines; return the texts by the lines."""
    chance, lines, texts = np.random.default_rng(0), [], {}
    for number in range(count):
        steps, way = int(chance.integers(10, 20)), number % 3
        slope = (1, -1, 0)[way] * np.linspace(-1, 1, steps)
        values = np.stack([slope + chance.normal(0, 0.05, steps), chance.normal(0, 1, steps)], 1)
        texts[f"{path}, line {number + 1}"] = WAYS[way]
        lines.append(json.dumps({"values": values.round(3).tolist(), "text": WAYS[way]}))
    Path(path).write_text("\n".join(lines))
    return texts
