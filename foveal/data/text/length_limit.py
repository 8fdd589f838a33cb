"""The maximum number of tokens that a model generates for a source."""

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from foveal.config.old_names import upgrade_fields
from foveal.core.parse_json import parse_json
from foveal.data.text.tokenizer_base import Tokenizer

LENGTH_LIMIT_FILE = "limit.json"
LENGTH_MARGIN = 1.5
"""The limit as a multiple of the longest target in training."""

COUNTED_TEXTS = 1 << 16
"""Texts that are in memory at a time while the longest is looked for."""


@dataclass(frozen=True)
class LengthLimit:
    """A limit for the length of generated targets.

    The limit is `limit` tokens, or `ratio` tokens per source token (or frame) if that is more, but at most
    `maximum`, the longest target that the model can read.
    """

    limit: int
    ratio: float = 0.0
    maximum: int = 1 << 20

    @classmethod
    def from_lengths(cls, max_length: int, ratio: float, maximum: int) -> "LengthLimit":
        """Return a limit of 1.5 times `max_length`, the longest training target, with 1.5 times `ratio`.

        `ratio` is the largest ratio of target tokens to source tokens.
        """
        return cls(min(maximum, int(LENGTH_MARGIN * max_length) + 1), LENGTH_MARGIN * ratio, maximum)

    @classmethod
    def from_texts(
        cls, target: Tokenizer, texts: Iterable[str], maximum: int, ratio: float = 0.0
    ) -> "LengthLimit":
        """Return the limit for the training targets `texts`, in tokens of the tokenizer `target`."""
        return cls.from_lengths(max_token_count(target, texts), ratio, maximum)

    def for_source(self, source: int) -> int:
        """Return the maximum number of tokens to generate for a source of length `source`."""
        return min(self.maximum, max(self.limit, math.ceil(self.ratio * source)))

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def max_token_count(tokenizer: Tokenizer, texts: Iterable[str]) -> int:
    """Return the number of tokens of the text with the most tokens.

    This need not be the text with the most characters. A token has at least one byte, so of `COUNTED_TEXTS`
    at a time those are counted, from the longest on, that have more bytes than the maximum so far.
    """
    maximum, remaining = 0, iter(texts)
    while chunk := {*islice(remaining, COUNTED_TEXTS)}:
        for text in sorted(chunk, key=lambda text: len(text.encode()), reverse=True):
            if len(text.encode()) <= maximum:
                break
            maximum = max(maximum, len(tokenizer.encode_known(text)[0]))
    return maximum


def load_length_limit(folder: Path) -> LengthLimit:
    """Read the limit of a run from `folder`. Older runs have only the field `limit`."""
    return LengthLimit(**upgrade_fields(LengthLimit, parse_json((folder / LENGTH_LIMIT_FILE).read_bytes())))
