"""N-grams of tokens as numbers, and the weights of a bag of n-grams."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

MULTIPLIER = 6364136223846793005
"""An odd number whose powers spread over all 64 bits (Knuth's generator MMIX)."""


def ngram_codes(tokens: Int[Tensor, " S"], longest: int) -> Int[Tensor, " N"]:
    """Return a number for each n-gram of 1 to `longest` tokens: `sum_i (token_i + 1) m^(n-1-i)` modulo 2^64.

    Among a million n-grams, the probability that any two have the same number is about one in ten million.
    """
    codes, parts = torch.zeros_like(tokens), list[Tensor]()
    for length in range(1, min(longest, len(tokens)) + 1):
        codes = codes[: len(tokens) - length + 1] * MULTIPLIER + tokens[length - 1 :] + 1
        parts.append(codes)
    return torch.cat(parts) if parts else tokens


UNUSED = torch.iinfo(torch.int64).max
"""The code of columns without an n-gram."""


def ngram_vocabulary(
    texts: Sequence[Int[Tensor, " _"]], width: int
) -> tuple[Int[Tensor, " D"], Float[Tensor, " D"]]:
    """Return the codes of the `width` n-grams that occur in most texts, in two at least, and their weights.

    The codes ascend. The weight is `idf = 1 + ln((1 + N) / (1 + n))`, where n of N texts have the n-gram.
    Columns without an n-gram have the code `UNUSED` and the weight 0.
    """
    seen = torch.cat([torch.unique(codes) for codes in texts])
    distinct, counts = torch.unique(seen, return_counts=True)
    distinct, counts = distinct[counts >= 2], counts[counts >= 2]
    chosen = counts.argsort(descending=True, stable=True)[:width].sort().values
    codes, idf = distinct.new_full((width,), UNUSED), torch.zeros(width, device=distinct.device)
    codes[: len(chosen)] = distinct[chosen]
    idf[: len(chosen)] = 1 + ((1 + len(texts)) / (1 + counts[chosen])).log()
    return codes, idf


def term_weights(
    ngrams: Int[Tensor, " N"], codes: Int[Tensor, " D"], idf: Float[Tensor, " D"]
) -> Float[Tensor, " D"]:
    """Return the TF-IDF of one text: `(1 + ln count) idf` for each of the sorted `codes`, scaled to length
    1."""
    places = torch.searchsorted(codes, ngrams).clamp(max=len(codes) - 1)
    counts = torch.bincount(places[codes[places] == ngrams], minlength=len(codes)).to(idf.dtype)
    return F.normalize(torch.where(counts > 0, 1 + counts.clamp(min=1).log(), 0.0) * idf, dim=0)


def stack_term_weights(
    texts: Sequence[Int[Tensor, " _"]], vocabulary: tuple[Int[Tensor, " D"], Float[Tensor, " D"]]
) -> Float[Tensor, "N D"]:
    """Return the `term_weights` of texts, which are never in memory twice."""
    codes, idf = vocabulary
    features = idf.new_empty(len(texts), len(codes))
    for row, ngrams in zip(features, texts, strict=True):
        row.copy_(term_weights(ngrams, codes, idf))
    return features
