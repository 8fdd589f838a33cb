"""A table of reviews and the settings of a small model of them."""

import random
from pathlib import Path

SMALL = (
    *("model.encoder.width=16", "model.encoder.layers=2"),
    *(
        "data.tokenizer=character",
        "data.context_length=32",
        "data.batch_tokens=256",
        "training.evaluate_every=30",
    ),
)


def reviews(path: str = "reviews.csv", labels: tuple[str, ...] = ("mat", "rat")) -> str:
    chance = random.Random(0)
    rows = [f"the {chance.choice(['cat', 'dog', 'hen'])} is {chance.choice(labels)}" for _ in range(300)]
    lines = (f"{row} {number % 7},{row.split()[-1]}\n" for number, row in enumerate(rows))
    Path(path).write_text("text,label\n" + "".join(lines))
    return path
