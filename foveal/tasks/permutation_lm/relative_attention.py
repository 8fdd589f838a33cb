"""Attention with relative positions (Transformer-XL, Dai et al. 2019) and relative segments (XLNet, Yang et
al. 2019)."""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from foveal.layers.linear import Linear
from foveal.layers.position import SinusoidalPosition


def relative_attention(
    q: Float[Tensor, "B N H K"],
    k: Float[Tensor, "B T H K"],
    v: Float[Tensor, "B T H K"],
    r: Float[Tensor, "R H K"],
    content_bias: Float[Tensor, "H K"],
    position_bias: Float[Tensor, "H K"],
    places: Int[Tensor, "B N"],
    visible: Bool[Tensor, "B N T"],
    segment_scores: Float[Tensor, "B H N T"] | None = None,
) -> Float[Tensor, "B N H K"]:
    """Return attention whose scores depend on contents and on distances (Dai et al. 2019, section 3.3):

        a_ij = (q_i + u) . k_j + (q_i + w) . r_(i-j) + s_ij        y_i = sum_j softmax_j(a_ij / sqrt(K)) v_j

    over the positions j that are `visible`. Query n of row b stands at position i = `places[b, n]`. u is the
    `content_bias`, w the `position_bias`, and r has a key for each distance from -(T - 1) to T - 1. s are the
    `segment_scores`, if given. A query that sees no position gets zeros.
    """
    T, K = k.shape[1], k.shape[3]
    by_content = torch.einsum("bnhk,bthk->bhnt", q + content_bias, k)
    by_distance = torch.einsum("bnhk,rhk->bhnr", q + position_bias, r)
    distances = places[:, :, None] - torch.arange(T, device=k.device) + T - 1
    scores = by_content + by_distance.gather(3, distances[:, None].expand_as(by_content))
    if segment_scores is not None:
        scores = scores + segment_scores
    seen = visible[:, None]
    scores = (scores / math.sqrt(K)).masked_fill(~seen, torch.finfo(scores.dtype).min)
    weights = scores.softmax(3).where(seen, 0.0)
    return torch.einsum("bhnt,bthk->bnhk", weights.to(v.dtype), v)


class RelativeAttention(nn.Module):
    """Heads of `relative_attention`, with sinusoids of the distances.

    With `segments`, the scores have a part that says whether two tokens are of the same segment (Yang et al.
    2019, section 2.5): `(q_i + b) . s`, with one s for tokens of the same segment and one for others.

    Weights start normal with standard deviation 0.02, biases at zero.
    """

    no_decay = not_hidden = ("content_bias", "position_bias", "segment_bias", "segment_keys")

    def __init__(self, width: int, heads: int, segments: bool = False):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.distance, self.output = (
            Linear(width, width, bias=False) for _ in range(5)
        )
        self.sinusoids = SinusoidalPosition(width)
        shape = heads, width // heads
        self.content_bias = nn.Parameter(torch.empty(shape))
        self.position_bias = nn.Parameter(torch.empty(shape))
        self.segment_bias = nn.Parameter(torch.empty(shape)) if segments else None
        self.segment_keys = nn.Parameter(torch.empty(2, *shape)) if segments else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for linear in (self.query, self.key, self.value, self.distance, self.output):
            nn.init.normal_(linear.weight, std=0.02)
        for bias in (self.content_bias, self.position_bias, self.segment_bias):
            if bias is not None:
                nn.init.zeros_(bias)
        if self.segment_keys is not None:
            nn.init.normal_(self.segment_keys, std=0.02)

    def forward(
        self,
        x: Float[Tensor, "B N D"],
        content: Float[Tensor, "B T D"],
        places: Int[Tensor, "B N"],
        visible: Bool[Tensor, "B N T"],
        same_segment: Bool[Tensor, "B N T"] | None = None,
    ) -> Float[Tensor, "B N D"]:
        """Return what the vectors x at `places` read of the `visible` content.

        Without `same_segment`, all tokens are of the same segment, which changes no weight.
        """
        T = content.shape[1]
        offset = torch.tensor([1 - T], device=x.device)
        r = self._heads(self.distance(self.sinusoids(offset, 2 * T - 1)[0].to(content.dtype)))
        q, k, v = (
            self._heads(layer(inputs))
            for layer, inputs in ((self.query, x), (self.key, content), (self.value, content))
        )
        scores = None if same_segment is None else self._segment_scores(q, same_segment)
        biases = self.content_bias, self.position_bias
        return self.output(relative_attention(q, k, v, r, *biases, places, visible, scores).flatten(2))

    def _heads(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B H K"]:
        return torch.unflatten(x, -1, (self.heads, -1))

    def _segment_scores(
        self, q: Float[Tensor, "B N H K"], same_segment: Bool[Tensor, "B N T"]
    ) -> Float[Tensor, "B H N T"]:
        """Return `(q_i + b) . s` of each pair of tokens."""
        assert self.segment_bias is not None
        assert self.segment_keys is not None
        same, other = torch.einsum("bnhk,shk->sbhn", q + self.segment_bias, self.segment_keys)
        return torch.where(same_segment[:, None], same[..., None], other[..., None])
