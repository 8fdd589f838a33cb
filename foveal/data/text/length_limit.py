"""How long a target may become."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from foveal.config.old_names import upgrade_fields
from foveal.data.text.tokenizer_base import Tokenizer

LENGTH_LIMIT_FILE = "limit.json"
LENGTH_MARGIN = 1.5
"""Of what training has."""


@dataclass(frozen=True)
class LengthLimit:
    """`limit` tokens, or `ratio` for each token (or frame) of the source where that is more, but no more than
    `maximum`, which is what the model reads of a target."""

    limit: int
    ratio: float = 0.0
    maximum: int = 1 << 20

    @classmethod
    def from_lengths(cls, max_length: int, ratio: float, maximum: int) -> "LengthLimit":
        """Half as many again as the `max_length` target of training has, and as its targets have of tokens to
        each token of their sources."""
        return cls(min(maximum, int(LENGTH_MARGIN * max_length) + 1), LENGTH_MARGIN * ratio, maximum)

    @classmethod
    def from_texts(
        cls, target: Tokenizer, texts: Iterable[str], maximum: int, ratio: float = 0.0
    ) -> "LengthLimit":
        """`from_lengths` on the `texts` of training, in tokens of `target`."""
        return cls.from_lengths(max_token_count(target, texts), ratio, maximum)

    def for_source(self, source: int) -> int:
        """The most tokens that are written for a source of that length."""
        return min(self.maximum, max(self.limit, math.ceil(self.ratio * source)))

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def max_token_count(tokenizer: Tokenizer, texts: Iterable[str]) -> int:
    """Those of the text that has the most, which need not be the one of the most characters. No token is less
    than a byte, so the longest are counted first, and none that has fewer bytes than the most tokens yet."""
    most = 0
    for text in sorted(set(texts), key=lambda text: len(text.encode()), reverse=True):
        if len(text.encode()) <= most:
            break
        most = max(most, len(tokenizer.encode_known(text)[0]))
    return most


def load_length_limit(folder: Path) -> LengthLimit:
    """What a run keeps of it in `folder`; in older ones there is the limit alone."""
    return LengthLimit(**upgrade_fields(LengthLimit, json.loads((folder / LENGTH_LIMIT_FILE).read_bytes())))
