"""The baseline of language models: counts of n-grams."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveal.ops.ngrams import MULTIPLIER

LONGEST_CONTEXT = 5
"""Tokens at most that the baseline of a language model looks back."""
MAX_TOKENS = 2**20
"""Tokens of a training text at most that are counted: the last ones."""


def ngram_log_probabilities(
    train: Int[Tensor, " N"],
    held_out: Int[Tensor, " M"],
    vocabulary: int,
    longest_context: int = LONGEST_CONTEXT,
) -> list[Float[Tensor, " M-1"]]:
    """Return the log-probability of each token of `held_out` but the first, in nats, by counts of `train`.

    The first result has contexts of no token, the next of at most one, and so on up to `longest_context`
    tokens. Shorter and longer contexts are interpolated (Witten and Bell 1991, method C): `p_n(x) =
    (c(x) + d p_(n-1)(x)) / (c + d)`, where the context of n tokens occurs c times, c(x) times before x, and
    before d different tokens. `p_(-1)` is uniform.
    """
    train = train[-MAX_TOKENS:]
    codes, held_out_codes = (tokens.new_zeros(len(tokens) + 1) for tokens in (train, held_out))
    probabilities = torch.full((len(held_out),), 1 / vocabulary, dtype=torch.float64)
    results = list[Tensor]()
    for length in range(min(longest_context + 1, len(train), len(held_out))):
        if length:
            codes = codes[:-1] * MULTIPLIER + train[length - 1 :] + 1
            held_out_codes = held_out_codes[:-1] * MULTIPLIER + held_out[length - 1 :] + 1
        contexts, places, totals = torch.unique(codes[:-1], return_inverse=True, return_counts=True)
        pairs, counts = torch.unique(places * vocabulary + train[length:], return_counts=True)
        kinds = torch.bincount(pairs // vocabulary, minlength=len(contexts))
        place, known = _find(contexts, held_out_codes[:-1])
        pair, known_pair = _find(pairs, place * vocabulary + held_out[length:])
        count = torch.where(known_pair, counts[pair], 0)
        mixed = (count + kinds[place] * probabilities[length:]) / (totals[place] + kinds[place])
        probabilities[length:] = torch.where(known, mixed, probabilities[length:])
        results.append(probabilities[1:].log())
    return results


def _find(
    ordered: Int[Tensor, " N"], values: Int[Tensor, " M"]
) -> tuple[Int[Tensor, " M"], Bool[Tensor, " M"]]:
    """Return the places of values in an ordered list, and whether they are there."""
    places = torch.searchsorted(ordered, values).clamp(max=len(ordered) - 1)
    return places, ordered[places] == values
