"""A data set: short reviews and their moods, which are computed."""

import random
from collections.abc import Iterator

import foveal
from foveal.core.log import Log

WORDS = {
    "glad": ["great", "lovely", "bright", "warm", "clever"],
    "sad": ["dull", "slow", "cold", "empty", "boring"],
}
THINGS = ["film", "book", "song", "play", "meal"]


@foveal.register_dataset(
    "short-reviews", description="400 short reviews, glad or sad; computed", license="none"
)
def short_reviews(log: Log) -> Iterator[tuple[str, bytes]]:
    draw = random.Random(0)
    for split, count in (("train", 300), ("valid", 50), ("test", 50)):
        lines = ["text,mood"]
        for _ in range(count):
            mood = draw.choice([*WORDS])
            first, second = draw.sample(WORDS[mood], 2)
            lines.append(f"a {first} and {second} {draw.choice(THINGS)},{mood}")
        yield f"{split}.csv", "\n".join(lines).encode()
