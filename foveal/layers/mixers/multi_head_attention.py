"""The common part of all multi-head attention: four linear layers, and scaled dot-product attention."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.hooks import RemovableHandle

from foveal.core.tap import TappedModule
from foveal.distributed.tensor_group import ONE_PART, SplitAxes, TensorGroup, axes_below
from foveal.layers.linear import Linear
from foveal.layers.mixers.registry import StackFacts
from foveal.ops.attention.attention_map import AttentionMap
from foveal.ops.attention.dot_product import attention
from foveal.ops.attention.rotary import apply_rotary
from foveal.ops.linear import linear


class MultiHeadAttention(TappedModule):
    """H heads in parallel, each `softmax(q k^T / sqrt(K)) v` with K = width / H (Vaswani et al. 2017, 3.2).

    Keys and values are projections of vectors of width `source_width`. All weights start normal with standard
    deviation 0.02, biases at zero. Ranks can split the heads; `heads` is then the number of the own ones.
    """

    group = ONE_PART

    def __init__(self, width: int, heads: int, source_width: int):
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} is not a multiple of {heads} heads")
        self.d_in = self.d_out = self.width = width
        self.heads, self.head_width = heads, width // heads
        self.query = Linear(width, width)
        self.key = Linear(source_width, width)
        self.value = Linear(source_width, width)
        self.output = Linear(width, width)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for layer in (self.query, self.key, self.value, self.output):
            nn.init.normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)

    @property
    def attention_heads(self) -> int:
        """The number of heads."""
        return self.heads

    def split_among(self, group: TensorGroup) -> SplitAxes:
        """Split the heads (Shoeybi et al. 2019, figure 3b).

        Raises: ValueError: the ranks of the group do not divide the heads.
        """
        if self.heads % group.size:
            raise ValueError(f"{self.heads} heads can't be split among {group.size} ranks")
        self.group, self.heads = group, self.heads // group.size
        axes = axes_below("output", self.output.split_inputs(group))
        for name in ("query", "key", "value"):
            axes |= axes_below(name, getattr(self, name).split_outputs())
        return axes

    def without_head(self, head: int) -> RemovableHandle:
        """Set the output of a head to zero, until the result's `remove()` is called."""

        def clear(module: nn.Module, args: tuple[Tensor]) -> Tensor:
            heads = torch.unflatten(args[0], -1, (self.heads, -1)).clone()
            heads[..., head, :] = 0
            return heads.flatten(-2)

        return self.output.register_forward_pre_hook(clear)

    def _project(self, x: Float[Tensor, "B T D"], *layers: Linear) -> Float[Tensor, "B T E K"]:
        """Return the heads of all `layers`, concatenated.

        x has entered the group. The heads are computed by a single product. For few positions, each layer has
        its own product, which needs no copy of the weights.
        """
        if x.shape[0] * x.shape[1] < self.width:
            heads = torch.cat([linear(x, layer.weight, layer.bias) for layer in layers], 2)
        else:
            weight = torch.cat([layer.weight for layer in layers])
            heads = F.linear(x, weight, torch.cat([layer.bias for layer in layers]))
        return torch.unflatten(heads, 2, (len(layers) * self.heads, -1))

    def _queries_keys_values(
        self, x: Float[Tensor, "B T D"], positions: Int[Tensor, "#B T"] | None
    ) -> tuple[Float[Tensor, "B T H K"], Float[Tensor, "B T H K"], Float[Tensor, "B T H K"]]:
        """Return queries, keys and values of the same input. With `positions`, queries and keys
        are rotated."""
        heads = self._project(x, self.query, self.key, self.value)
        if positions is None:
            q, k, v = heads.chunk(3, 2)
            return q, k, v
        rotated, v = torch.split(heads, [2 * self.heads, self.heads], 2)
        q, k = apply_rotary(rotated, positions).chunk(2, 2)
        return q, k, v

    def _attend(
        self,
        q: Float[Tensor, "B T H K"],
        k: Float[Tensor, "B S H K"],
        v: Float[Tensor, "B S H K"],
        visible: Bool[Tensor, "#B #T S"] | None,
        causal: bool = False,
        window: int = 0,
    ) -> Float[Tensor, "B t D"]:
        """Apply `ops.attention.dot_product.attention`, then the output layer."""
        q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))  # (B, H, T, K)
        mask = None if visible is None else visible[:, None]
        y = attention(q, k, v, mask, causal, window)
        offset = k.shape[2] - q.shape[2]  # the queries are the last positions
        self.tap(
            "weights",
            lambda: AttentionMap(
                q, k, mask, causal=causal, offset=offset, window=window if causal else 0
            ).compare(v, y),
        )
        return self.output(y.transpose(1, 2).flatten(2))


def check_heads(heads: int, stack: StackFacts, section: str) -> None:
    """Check that the number of heads in the mixer's section divides the stack's width.

    Raises: ValueError: the heads do not divide the width, or leave an odd width for rotary positions.
    """
    width = stack.width
    if width % heads:
        raise ValueError(
            f"{stack.section}.width={width} is not a multiple of {stack.section}.{section}.heads={heads}"
        )
    if stack.rotary and width // heads % 2:
        raise ValueError(f"rotary positions need an even head width, not {width}/{heads} = {width // heads}")
