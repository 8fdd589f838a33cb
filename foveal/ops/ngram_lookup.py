"""N-gram lookup: what followed the last n tokens when they were seen before.

The match model of the compressor PAQ predicts the symbol that followed the latest occurrence of the last n
symbols (Mahoney 2005, "Adaptive weighing of context models for lossless data compression"). A Transformer's
induction heads learn the same rule (Olsson et al. 2022).

A text is here a row of numbers: token + 1, and `NOTHING` where there is no token. An n-gram has n tokens.
"""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from foveal.ops.ngrams import MULTIPLIER

NOTHING = 0
"""No token: before a text, between two texts, or where no n-gram was seen before."""


def ngram_lengths(longest: int) -> tuple[int, ...]:
    """Return the lengths from 2 to `longest` that are powers of two or half way between two of them."""
    lengths = sorted({factor << power for factor in (2, 3) for power in range(longest.bit_length())})
    return tuple(length for length in lengths if length <= longest)


def ngram_followers_reference(text: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
    """Return for each position and each n what followed the latest earlier occurrence of the last n tokens.

    Only the text up to the position is read. `NOTHING` stands for n-grams that were not seen before.
    """
    followers, seen = list[list[int]](), dict[tuple[int, ...], int]()
    for end in range(1, len(text) + 1):
        grams = [tuple(text[end - n : end]) if n <= end else (NOTHING,) for n in lengths]
        followers.append([NOTHING if NOTHING in gram else seen.get(gram, NOTHING) for gram in grams])
        if end < len(text):
            seen |= dict.fromkeys(grams, text[end])
    return followers


def ngram_followers(text: Int[Tensor, "*B N"], lengths: Sequence[int]) -> Int[Tensor, "*B N K"]:
    """Compute `ngram_followers_reference` of every row: equal n-grams meet when their codes are sorted."""
    following = shift_left(text)
    followers = []
    for codes, whole in ngram_ends(text, lengths):
        order = codes.argsort(dim=-1, stable=True)  # of equal n-grams, the earlier one comes first
        ordered = codes.gather(-1, order)
        repeated = (ordered[..., 1:] == ordered[..., :-1]) & whole.gather(-1, order)[..., 1:]
        latest = torch.where(repeated, following.gather(-1, order)[..., :-1], NOTHING)
        followers.append(torch.zeros_like(text).scatter(-1, order[..., 1:], latest))
    return torch.stack(followers, -1)


def ngram_ends(
    text: Int[Tensor, "*B N"], lengths: Sequence[int]
) -> Iterator[tuple[Int[Tensor, "*B N"], Bool[Tensor, "*B N"]]]:
    """Yield for each n the codes of the n-grams that end at each position, and whether they are whole.

    The code is `sum_i text_i m^(n-1-i)` modulo 2^64. An n-gram with `NOTHING` in it is not whole.
    """
    codes, whole = text, text != NOTHING
    for n in range(1, max(lengths) + 1):
        if n > 1:
            codes = shift_right(codes) * MULTIPLIER + text
            whole = shift_right(whole) & (text != NOTHING)
        if n in lengths:
            yield codes, whole


def shift_left(x: Tensor) -> Tensor:
    """Return `x` one position earlier, with a 0 at the end of the last axis."""
    return torch.cat([x[..., 1:], torch.zeros_like(x[..., :1])], -1)


def shift_right(x: Tensor) -> Tensor:
    """Return `x` one position later, with a 0 at the start of the last axis."""
    return torch.cat([torch.zeros_like(x[..., :1]), x[..., :-1]], -1)
