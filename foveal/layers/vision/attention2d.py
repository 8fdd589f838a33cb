"""Self-attention over the positions of a feature map, between convolutions (Zhang et al. 2019, section 3)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from foveal.core.tap import TappedModule
from foveal.layers.linear import Linear
from foveal.ops.attention.attention_map import AttentionMap
from foveal.ops.attention.dot_product import attention

KEY_REDUCTION = 8
"""Channels of the input for each channel of queries and keys (section 3)."""


class SelfAttention2d(TappedModule):
    """`y_j = x_j + gamma * W_v sum_i a_ij h(x_i)`, `a_ij = softmax_i(f(x_i) . g(x_j) / sqrt(K))`.

    i and j are positions of the grid. f, g and h are 1x1 convolutions to K = C / 8 channels, and `W_v` is a
    1x1 convolution back to C. The paper does not divide by sqrt(K) as Vaswani et al. 2017 do; the division
    only scales f. Gamma, a single number, starts at zero, so the block starts as the identity. The weights
    start normal with variance 1 / fan-in.

    Example:

        >>> tuple(layers.SelfAttention2d(16)(torch.randn(2, 16, 8, 8)).shape)
        (2, 16, 8, 8)
    """

    def __init__(self, width: int):
        super().__init__()
        inner = max(width // KEY_REDUCTION, 1)
        self.query = Linear(width, inner, bias=False)
        self.key = Linear(width, inner, bias=False)
        self.value = Linear(width, inner, bias=False)
        self.output = Linear(inner, width, bias=False)
        self.gamma = nn.Parameter(torch.empty(()))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for linear in (self.query, self.key, self.value, self.output):
            nn.init.normal_(linear.weight, std=linear.in_features**-0.5)
        nn.init.zeros_(self.gamma)

    @property
    def attention_heads(self) -> int:
        """Return the number of heads, 1."""
        return 1

    def without_head(self, head: int) -> RemovableHandle:
        """Set what is read from the positions to zero, until the result's `remove()` is called."""
        return self.output.register_forward_pre_hook(lambda _, args: (torch.zeros_like(args[0]),))

    def forward(self, x: Float[Tensor, "B C h w"]) -> Float[Tensor, "B C h w"]:
        vectors = x.flatten(2).mT
        q, k, v = (layer(vectors)[:, None] for layer in (self.query, self.key, self.value))  # (B, 1, S, K)
        heads = attention(q, k, v)
        self.tap("weights", lambda: AttentionMap(q, k).compare(v, heads))
        y = self.output(heads[:, 0])
        return x + self.gamma * y.mT.reshape(x.shape)
