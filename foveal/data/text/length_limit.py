"""How long a target may become."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from foveal.data.text.tokenizer_base import Tokenizer

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

    @classmethod
    def of_texts(cls, target: Tokenizer, texts: Iterable[str], most: int, ratio: float = 0.0) -> "Room":
        """`measured` on the `texts` of training, in tokens of `target`."""
        return cls.measured(most_tokens(target, texts), ratio, most)

    def of(self, source: int) -> int:
        """The most tokens that are written for a source of that length."""
        return min(self.most, max(self.limit, math.ceil(self.ratio * source)))

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def most_tokens(tokenizer: Tokenizer, texts: Iterable[str]) -> int:
    """Those of the text that has the most, which need not be the one of the most characters. No token is less
    than a byte, so the longest are counted first, and none that has fewer bytes than the most tokens yet."""
    most = 0
    for text in sorted(set(texts), key=lambda text: len(text.encode()), reverse=True):
        if len(text.encode()) <= most:
            break
        most = max(most, len(tokenizer.encode_known(text)[0]))
    return most


def read_room(folder: Path) -> Room:
    """What a run keeps of it in `folder`; in older ones there is the limit alone."""
    return Room(**json.loads((folder / FILE).read_bytes()))
