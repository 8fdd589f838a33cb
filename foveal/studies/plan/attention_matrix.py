"""The attention weights of all pairs of positions, which a fused kernel never holds (Dao et al. 2022)."""

from dataclasses import dataclass

from torch import nn

from foveal.config import Config
from foveal.layers.mixers.multi_head_attention import MultiHeadAttention

LOG_SUM_BYTES = 4
"""Bytes that a kernel keeps for a query: the log of the sum of its exponentials, in float32."""


@dataclass(frozen=True)
class AttentionMatrix:
    """The weights of a layer for the rows of a micro-batch."""

    rows: int
    heads: int
    positions: int
    number_bytes: int
    """Bytes of a weight."""

    @property
    def whole(self) -> int:
        """Bytes of all pairs of positions, which grow with the square of the positions."""
        return self.rows * self.heads * self.positions**2 * self.number_bytes

    @property
    def kept(self) -> int:
        """Bytes that a fused kernel keeps for the backward pass, beside queries, keys, values and outputs."""
        return self.rows * self.heads * self.positions * LOG_SUM_BYTES


def attention_heads(model: nn.Module) -> int:
    """Return the heads of a layer of a model's first stack; 0 without attention."""
    layers = (module for module in model.modules() if isinstance(module, MultiHeadAttention))
    return next((layer.heads for layer in layers), 0)


def attention_matrix(config: Config, rows: int, heads: int, positions: int) -> AttentionMatrix:
    """Return the weights of a layer of attention for some rows."""
    return AttentionMatrix(rows, heads, positions, 4 if config.training.precision == "float32" else 2)


def in_both_units(size: int) -> str:
    """Return a size in units of 1000 and of 1024, which differ by 10 % at a terabyte."""
    power = min(4, max(0, (len(str(size)) - 1) // 3))
    decimal, binary = (("B", "B"), ("kB", "KiB"), ("MB", "MiB"), ("GB", "GiB"), ("TB", "TiB"))[power]
    words = f"{size / 1000**power:,.3g} {decimal}"
    return words if power == 0 else f"{words} ({size / 1024**power:,.4g} {binary})"
