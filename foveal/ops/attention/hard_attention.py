"""Hard attention: a position is sampled, and only the vector there is read (Xu et al. 2015, 4.1)."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from foveal.core.runtime import at_least_float32


class SampledPosition(NamedTuple):
    """A sampled position of each row, with its log-probability and the entropy of the distribution."""

    position: Int[Tensor, " B"]
    log_prob: Float[Tensor, " B"]
    """`log p(position)`, through which REINFORCE trains the scores."""
    entropy: Float[Tensor, " B"]
    """`-sum_i p(i) log p(i)` in nats."""


def sample_position(e: Float[Tensor, "B S"], visible: Bool[Tensor, "B S"], sample: bool) -> SampledPosition:
    """Sample a position i with probability `p(i) = softmax(e)_i` over the visible positions (equation 8).

    Without `sample`, return the most likely position. Where no position is visible, any position may be
    returned. The argmax of `log p` plus Gumbel noise is a sample. Unlike `torch.multinomial`, the argmax
    accepts NaN.
    """
    e = at_least_float32(e)
    log_p = e.masked_fill(~visible, torch.finfo(e.dtype).min / 2).log_softmax(1)
    noise = -torch.empty_like(log_p).exponential_().log() if sample else torch.zeros_like(log_p)
    position = (log_p.detach() + noise).argmax(1)
    log_prob = log_p.gather(1, position[:, None]).squeeze(1)
    return SampledPosition(position, log_prob, -(log_p.exp() * log_p).sum(1))
