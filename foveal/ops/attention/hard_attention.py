"""Hard attention: one place is looked at, and which is a matter of chance (Xu et al. 2015, 4.1)."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveal.core.runtime import at_least_single


class Choice(NamedTuple):
    place: Int[Tensor, " B"]
    log_chance: Float[Tensor, " B"]
    """`log p(place)`, through which REINFORCE teaches the scores."""
    entropy: Float[Tensor, " B"]
    """`-sum_i p(i) log p(i)` in nats."""


def choose_place(e: Float[Tensor, "B S"], visible: Bool[Tensor, "B S"], draw: bool) -> Choice:
    """A place i with the chance `p(i) = softmax(e)_i` over those that are visible (equation 8), or, without
    `draw`, the likeliest. Where nothing is visible it is any place.

    The largest of `log p` and Gumbel noise is a sample; unlike `torch.multinomial` it stands NaN.
    """
    e = at_least_single(e)
    log_p = e.masked_fill(~visible, torch.finfo(e.dtype).min / 2).log_softmax(1)
    noise = -torch.empty_like(log_p).exponential_().log() if draw else torch.zeros_like(log_p)
    place = (log_p.detach() + noise).argmax(1)
    log_chance = log_p.gather(1, place[:, None]).squeeze(1)
    return Choice(place, log_chance, -(log_p.exp() * log_p).sum(1))
