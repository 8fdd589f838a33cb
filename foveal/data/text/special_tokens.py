"""Special tokens: the beginning and the end of a sequence, and the mask."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from foveal.data.text.tokenizers import TokenIds, Tokenizer


@dataclass(frozen=True)
class SpecialTokens:
    """Three tokens, numbered after the `size` = V tokens of a tokenizer.

    A source ends with `eos`. A target y is read as [bos, y ...] and scored as [y ..., eos]. `mask` replaces a
    token to be predicted.
    """

    size: int

    @property
    def bos(self) -> int:
        return self.size

    @property
    def eos(self) -> int:
        return self.size + 1

    @property
    def mask(self) -> int:
        return self.size + 2

    @property
    def vocab_size(self) -> int:
        """V with the special tokens: the number of rows of an embedding."""
        return self.size + 3


def token_names(tokens: Iterable[int], tokenizer: Tokenizer) -> tuple[str, ...]:
    """Return the text of each token. Bytes inside a character are written as `\\xf0`."""
    special = SpecialTokens(tokenizer.size)
    names = {special.bos: "<start>", special.eos: "<stop>", special.mask: "<mask>"}
    return tuple(
        names[token] if token in names else tokenizer.pieces[token].decode(errors="backslashreplace")
        for token in tokens
    )


def add_special_tokens(tokens: TokenIds, tokenizer: Tokenizer, max_length: int | None = None) -> TokenIds:
    """Return the tokens of a source with `eos` at the end, and `bos` at the start if the tokenizer has
    `add_bos`.

    The last tokens are cut if the result would be longer than `max_length`.
    """
    special_tokens = SpecialTokens(tokenizer.size)
    front = int(tokenizer.add_bos)
    count = len(tokens) if max_length is None else min(len(tokens), max(0, max_length - front - 1))
    result = np.full(front + count + 1, special_tokens.eos)
    result[:front] = special_tokens.bos
    result[front:-1] = tokens[:count]
    return result
