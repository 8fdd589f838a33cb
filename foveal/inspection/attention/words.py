"""Attention weights between source words and target words (Bahdanau et al. 2015, figure 3)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, UInt8

from foveal.core.errors import UserError
from foveal.core.terminal_text import LINE_SIGNS, escape_rare_spaces
from foveal.metrics.unicode_scripts import is_spaceless

TokenText = str | bytes
"""The text of a token. Bytes may be part of a character."""
SPECIAL_TOKEN = re.compile(r" ?</?\w+>")
"""A token that stands for no text, such as `<stop>`: a word by itself."""
WORD_PREFIXES = (" ", "Ġ", "▁")
"""White space in front of a word: a space, and the signs that tokenizers write in its place."""


@dataclass(frozen=True)
class WordAttention:
    """Attention between words: `weights[h, t, s]` is how much attention head h pays to `source[s]` for
    `target[t]`."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: Float[np.ndarray, "H T S"]
    heads: tuple[str, ...]
    """The names of the heads."""

    def head_weights(self, head: str | None) -> Float[np.ndarray, "T S"]:
        """Return the weights of a head, or for None the mean of all heads.

        Raises: UserError: there is no such head.
        """
        return self.weights.mean(0) if head is None else self.weights[head_index(head, self.heads)]


class ImageAttention(NamedTuple):
    """Attention to an image: `weights[t, s]` is how much attention the model pays to grid cell s for
    `words[t]`.

    Cells of the `grid` (rows, columns) are numbered row by row. `pixels` are the pixels that the model read.
    The grid covers exactly these pixels.
    """

    pixels: UInt8[np.ndarray, "H W 3"]
    grid: tuple[int, int]
    weights: Float[np.ndarray, "T S"]
    words: Sequence[str]


def head_index(head: str, heads: Sequence[str]) -> int:
    """Return the index of a head.

    Raises: UserError: there is no such head.
    """
    if head not in heads:
        raise UserError(f"--head {head}: there is no such head; there are {', '.join(heads)}")
    return heads.index(head)


def word_attention(
    source: Sequence[TokenText],
    target: Sequence[TokenText],
    weights: Float[np.ndarray, "H T S"],
    heads: Sequence[str] = (),
) -> WordAttention:
    """Convert attention weights between tokens (T target, S source) to weights between words.

    The weight of a source word is the sum over its tokens. The weight of a target word is the mean over its
    tokens. A token begins a word if white space comes before the token, or if the token belongs to a script
    without spaces. A text of single-character tokens keeps its characters as words. Heads without names are
    numbered from 1.

    Raises: UserError: the source or the target has no tokens.
    """
    if not source or not target:
        raise UserError(
            "no tokens in the source or the target, so there is nothing to align; leave this pair out"
        )
    sources, starts = split_words(source)
    by_source_word = np.add.reduceat(weights.astype(np.float64), starts, axis=2)
    targets, by_word = average_target_words(target, by_source_word)
    names = tuple(heads) or tuple(str(1 + i) for i in range(len(weights)))
    return WordAttention(sources, targets, by_word, names)


def average_target_words(
    target: Sequence[TokenText], weights: Float[np.ndarray, "H T S"]
) -> tuple[tuple[str, ...], Float[np.ndarray, "H W S"]]:
    """Return the words of a target and the weights of each word, the mean over its tokens."""
    texts, starts = split_words(target)
    sizes = np.diff(starts, append=len(target))
    return texts, np.add.reduceat(weights.astype(np.float64), starts, axis=1) / sizes[:, None]


def split_words(tokens: Sequence[TokenText]) -> tuple[tuple[str, ...], Int[np.ndarray, " W"]]:
    """Return the words that the tokens spell, and the index of the first token of each word."""
    encoded = [token.encode(errors="replace") if isinstance(token, str) else token for token in tokens]
    character_starts = [i for i, token in enumerate(encoded) if i == 0 or not _is_continuation(token)]
    texts = _join_tokens(encoded, character_starts)
    if all(len(text) <= 1 or SPECIAL_TOKEN.fullmatch(text) for text in texts):
        starts = character_starts
    else:
        pairs = zip(character_starts, texts, ["", *texts], strict=False)
        starts = [i for i, text, previous in pairs if i == 0 or _starts_word(text, previous)]
    return tuple(map(visible_text, _join_tokens(encoded, starts))), np.array(starts)


def _is_continuation(token: bytes) -> bool:
    """Return whether the token begins inside a UTF-8 character."""
    return bool(token) and 0x80 <= token[0] < 0xC0


def _join_tokens(tokens: Sequence[bytes], starts: Sequence[int]) -> list[str]:
    """Return the text from each start to the next."""
    ends = [*starts[1:], len(tokens)]
    return [
        b"".join(tokens[start:end]).decode(errors="replace") for start, end in zip(starts, ends, strict=True)
    ]


def _starts_word(text: str, previous: str) -> bool:
    """Return whether a word begins with `text`, which follows the text `previous`."""
    return (
        text.startswith(WORD_PREFIXES)
        or (previous.endswith(" ") and not previous.isspace())
        or bool(SPECIAL_TOKEN.fullmatch(text) or SPECIAL_TOKEN.fullmatch(previous))
        or is_spaceless(text)
    )


def visible_text(word: str) -> str:
    """Return a word without white space around it; invisible characters become signs."""
    stripped = word.strip("".join(WORD_PREFIXES)) or "␣"
    return escape_rare_spaces(stripped.translate(LINE_SIGNS))
