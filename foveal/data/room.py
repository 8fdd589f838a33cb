"""How long a target may become."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "limit.json"
SPARE = 1.5
"""Of what training has."""


@dataclass(frozen=True)
class Room:
    """`limit` tokens, or `ratio` for each token (or frame) of the source where that is more, but no more than
    `most`, which is what the model reads of a target."""

    limit: int
    ratio: float = 0.0
    most: int = 1 << 20

    @classmethod
    def measured(cls, longest: int, ratio: float, most: int) -> "Room":
        """Half as many again as the `longest` target of training has, and as its targets have of tokens to
        each token of their sources."""
        return cls(min(most, int(SPARE * longest) + 1), SPARE * ratio, most)

    def of(self, source: int) -> int:
        """The most tokens that are written for a source of that length."""
        return min(self.most, max(self.limit, math.ceil(self.ratio * source)))

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def read_room(folder: Path) -> Room:
    """What a run keeps of it in `folder`; in older ones there is the limit alone."""
    return Room(**json.loads((folder / FILE).read_bytes()))
