"""Hard attention: one place is looked at, and which is a matter of chance (Xu et al. 2015, 4.1)."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveal.core.runtime import at_least_float32


class SampledPosition(NamedTuple):
    position: Int[Tensor, " B"]
    log_prob: Float[Tensor, " B"]
    """`log p(position)`, through which REINFORCE teaches the scores."""
    entropy: Float[Tensor, " B"]
    """`-sum_i p(i) log p(i)` in nats."""


def sample_position(e: Float[Tensor, "B S"], visible: Bool[Tensor, "B S"], sample: bool) -> SampledPosition:
    """A place i with the chance `p(i) = softmax(e)_i` over those that are visible (equation 8), or, without
    `sample`, the likeliest. Where nothing is visible it is any place.

    The largest of `log p` and Gumbel noise is a sample; unlike `torch.multinomial` it stands NaN.
    """
    e = at_least_float32(e)
    log_p = e.masked_fill(~visible, torch.finfo(e.dtype).min / 2).log_softmax(1)
    noise = -torch.empty_like(log_p).exponential_().log() if sample else torch.zeros_like(log_p)
    place = (log_p.detach() + noise).argmax(1)
    log_chance = log_p.gather(1, place[:, None]).squeeze(1)
    return SampledPosition(place, log_chance, -(log_p.exp() * log_p).sum(1))
