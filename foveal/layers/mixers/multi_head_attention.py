"""The common part of all multi-head attention: four linear layers, and scaled dot-product attention."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.hooks import RemovableHandle

from foveal.core.tap import TappedModule
from foveal.distributed.tensor_group import ONE_PART, SplitAxes, TensorGroup, axes_below
from foveal.layers.linear import Linear
from foveal.layers.mixers.registry import StackFacts
from foveal.layers.norm import RMSNorm
from foveal.ops.attention.attention_map import AttentionMap
from foveal.ops.attention.dot_product import attention
from foveal.ops.attention.rotary import apply_rotary
from foveal.ops.linear import linear


@dataclass(frozen=True)
class HeadOptions:
    """What heads of attention may have besides those of Vaswani et al. 2017.

    Example:

        >>> options = layers.HeadOptions(key_heads=1, qk_norm=True, bias=False)
        >>> mixer = layers.SelfAttention(16, heads=4, options=options)
        >>> y, state = mixer(torch.randn(2, 5, 16))
        >>> tuple(state["keys"].shape)
        (2, 5, 1, 4)
    """

    key_heads: int = 0
    """Heads of keys and values, each read by equally many queries (Ainslie et al. 2023); 0 for all heads."""
    head_width: int = 0
    """K; 0 for the width over the number of heads."""
    qk_norm: bool = False
    """`q = rms_norm(q)` and `k = rms_norm(k)` of each head, before any rotation (Henry et al. 2020)."""
    bias: bool = True
    """Whether the four linear layers have biases."""
    rotary_base: float = 10_000.0
    """Base of the angles of rotary positions."""
    epsilon: float = 1e-5
    """Epsilon of the norms."""

    @property
    def are_published(self) -> bool:
        """Return whether the heads are those of Vaswani et al. 2017, which have no norm."""
        return self == replace(PUBLISHED_HEADS, epsilon=self.epsilon)


PUBLISHED_HEADS = HeadOptions()
"""The heads of Vaswani et al. 2017."""


class MultiHeadAttention(TappedModule):
    """H heads in parallel, each `softmax(q k^T / sqrt(K)) v` with K = width / H (Vaswani et al. 2017, 3.2).

    Keys and values are projections of vectors of width `source_width`. All weights start normal with standard
    deviation 0.02, biases at zero. Ranks can split the heads; `heads` is then the number of the own ones.

    With `options`, G `key_heads` are shared: queries h H/G to (h + 1) H/G - 1 read keys and values of head h.
    """

    group = ONE_PART

    def __init__(self, width: int, heads: int, source_width: int, options: HeadOptions = PUBLISHED_HEADS):
        super().__init__()
        self.options, self.key_heads = options, options.key_heads or heads
        if not options.head_width and width % heads:
            raise ValueError(f"width {width} is not a multiple of {heads} heads")
        if heads % self.key_heads:
            raise ValueError(f"{heads} heads are not a multiple of {self.key_heads} heads of keys")
        self.d_in = self.d_out = self.width = width
        self.heads, self.head_width = heads, options.head_width or width // heads
        inner, keys = heads * self.head_width, self.key_heads * self.head_width
        self.query = Linear(width, inner, bias=options.bias)
        self.key = Linear(source_width, keys, bias=options.bias)
        self.value = Linear(source_width, keys, bias=options.bias)
        self.output = Linear(inner, width, bias=options.bias)
        self.query_norm = RMSNorm(self.head_width, options.epsilon) if options.qk_norm else None
        self.key_norm = RMSNorm(self.head_width, options.epsilon) if options.qk_norm else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for layer in (self.query, self.key, self.value, self.output):
            nn.init.normal_(layer.weight, std=0.02)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        for norm in (self.query_norm, self.key_norm):
            if norm is not None:
                norm.reset_parameters()

    @property
    def attention_heads(self) -> int:
        """The number of heads."""
        return self.heads

    def split_among(self, group: TensorGroup) -> SplitAxes:
        """Split the heads (Shoeybi et al. 2019, figure 3b).

        Raises: ValueError: the ranks of the group do not divide the heads, or the heads have norms.
        """
        for count, name in ((self.heads, "heads"), (self.key_heads, "heads of keys")):
            if count % group.size:
                raise ValueError(f"{count} {name} can't be split among {group.size} ranks")
        if self.options.qk_norm:
            raise ValueError("heads with norms of queries and keys can't be split")
        self.group, self.heads = group, self.heads // group.size
        self.key_heads //= group.size
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
            bias = torch.cat([layer.bias for layer in layers]) if self.options.bias else None
            heads = F.linear(x, weight, bias)
        return torch.unflatten(heads, 2, (-1, self.head_width))

    def _queries_keys_values(
        self, x: Float[Tensor, "B T D"], positions: Int[Tensor, "#B T"] | None
    ) -> tuple[Float[Tensor, "B T H K"], Float[Tensor, "B T G K"], Float[Tensor, "B T G K"]]:
        """Return queries, keys and values of the same input. With `positions`, queries and keys
        are rotated."""
        heads = self._project(x, self.query, self.key, self.value)
        compared, v = torch.split(heads, [self.heads + self.key_heads, self.key_heads], 2)
        counts = [self.heads, self.key_heads]
        if self.query_norm is not None and self.key_norm is not None:
            q, k = torch.split(compared, counts, 2)
            compared = torch.cat([_normalized(q, self.query_norm), _normalized(k, self.key_norm)], 2)
        if positions is not None:
            compared = apply_rotary(compared, positions, self.options.rotary_base)
        q, k = torch.split(compared, counts, 2)
        return q, k, v

    def _attend(
        self,
        q: Float[Tensor, "B T H K"],
        k: Float[Tensor, "B S G K"],
        v: Float[Tensor, "B S G K"],
        visible: Bool[Tensor, "#B #T S"] | None,
        causal: bool = False,
        window: int = 0,
    ) -> Float[Tensor, "B t D"]:
        """Apply `ops.attention.dot_product.attention`, then the output layer."""
        q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))  # (B, H, T, K)
        k, v = shared_heads(k, self.heads), shared_heads(v, self.heads)
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


def _normalized(x: Float[Tensor, "B T H K"], norm: RMSNorm) -> Float[Tensor, "B T H K"]:
    """Return `norm(x)`, computed in the precision of its gain under autocast, too."""
    return norm(x.to(norm.gain.dtype)).to(x.dtype)


def shared_heads(x: Float[Tensor, "B G S K"], heads: int) -> Float[Tensor, "B H S K"]:
    """Return the keys or values that each head reads: those of a head of keys, again and again."""
    times = heads // x.shape[1]
    return x if times == 1 else x[:, :, None].expand(-1, -1, times, -1, -1).flatten(1, 2)


def check_heads(heads: int, stack: StackFacts, section: str, head_width: int = 0) -> None:
    """Check that the number of heads in the mixer's section divides the stack's width, if the heads have no
    width of their own.

    Raises: ValueError: the heads do not divide the width, or leave an odd width for rotary positions.
    """
    width = stack.width
    if not head_width and width % heads:
        raise ValueError(
            f"{stack.section}.width={width} is not a multiple of {stack.section}.{section}.heads={heads}"
        )
    if stack.rotary and (head_width or width // heads) % 2:
        given = head_width or f"{width}/{heads} = {width // heads}"
        raise ValueError(f"rotary positions need an even head width, not {given}")
