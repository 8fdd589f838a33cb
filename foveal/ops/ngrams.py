"""N-grams of tokens as numbers, and the weights of a bag of n-grams."""

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


def term_weights(
    ngrams: Int[Tensor, " N"], codes: Int[Tensor, " D"], idf: Float[Tensor, " D"]
) -> Float[Tensor, " D"]:
    """Return the TF-IDF of one text: `(1 + ln count) idf` for each of the sorted `codes`, scaled to length
    1."""
    places = torch.searchsorted(codes, ngrams).clamp(max=len(codes) - 1)
    counts = torch.bincount(places[codes[places] == ngrams], minlength=len(codes)).to(idf.dtype)
    return F.normalize(torch.where(counts > 0, 1 + counts.clamp(min=1).log(), 0.0) * idf, dim=0)
