"""A block: norm, mixer, residual connection, feed-forward layer."""

from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.core.tap import TappedModule
from foveal.distributed.tensor_group import ONE_PART
from foveal.layers.blocks.moe import AuxLosses, MoELayer
from foveal.layers.dropout import Dropout
from foveal.layers.mixers.base import Mixer
from foveal.layers.norm import make_norm
from foveal.ops.padding import zero_padding


class Block(TappedModule):
    """One mixer and an optional feed-forward layer, each with its norm, dropout and residual.

    Pre-norm: `x = x + mixer(norm(x))`, `x = x + feedforward(norm(x))` (Xiong et al. 2020).

    Post-norm: `x = norm(x + mixer(x))`, `x = norm(x + feedforward(x))` (Vaswani et al. 2017).

    Both: `x = x + norm(mixer(norm(x)))`, `x = x + norm(feedforward(norm(x)))` (Ding et al. 2021, sandwich).

    Ranks may cut the stream between split layers along the sequence (`distributed.sequence_group`); a
    `MoELayer` reads all positions.

    Without `residual` there is no `x +`, and the mixer may change the width. `epsilon` is that of the norms.
    A `MoELayer` as feed-forward layer returns `aux`, a sum within each row, which the block passes on to the
    objective.

    Example:

        >>> mixer, feedforward = layers.SelfAttention(16, heads=4), layers.MLP(16, hidden=64)
        >>> block = layers.Block(mixer, feedforward, norm="layer", residual=True)
        >>> y, state, aux = block(torch.randn(2, 5, 16))
        >>> tuple(y.shape), sorted(state), aux
        ((2, 5, 16), ['count', 'filled', 'keys', 'values'], {})

    Raises: ValueError: `residual`, and the mixer changes the width.
    """

    stream = ONE_PART

    def __init__(
        self,
        mixer: nn.Module,
        feedforward: nn.Module | None = None,
        norm: Literal["none", "layer", "rms"] = "none",
        norm_placement: Literal["pre", "post", "both"] = "pre",
        residual: bool = False,
        dropout: float = 0.0,
        epsilon: float = 1e-5,
    ):
        super().__init__()
        d_in, d_out = int(mixer.d_in), int(mixer.d_out)  # type: ignore[arg-type]
        if residual and d_in != d_out:
            raise ValueError(f"a residual needs equal widths, not {d_in} and {d_out}")
        self.mixer: Mixer = mixer  # type: ignore[assignment]
        self.bounded = self.mixer.bounded
        self.feedforward = feedforward
        self.pre, self.residual = norm_placement != "post", residual
        self.mixer_norm = make_norm(norm, d_in if self.pre else d_out, epsilon)
        self.feedforward_norm = make_norm(norm, d_out, epsilon) if feedforward is not None else None
        self.mixer_output_norm = self.feedforward_output_norm = None
        if norm_placement == "both":
            self.mixer_output_norm = make_norm(norm, d_out, epsilon)
            if feedforward is not None:
                self.feedforward_output_norm = make_norm(norm, d_out, epsilon)
        self.dropout = Dropout(dropout)

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        return self.mixer.init_state(batch, capacity, memory)

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T E"], State, AuxLosses]:
        own_lengths = self.stream.own_lengths(lengths)
        x = zero_padding(x, own_lengths)
        y, state = self.mixer(self.mixer_norm(x) if self.pre else x, state, lengths=lengths)
        x = self._join(x, y, self.mixer_norm, self.mixer_output_norm)
        aux: AuxLosses = {}
        if self.feedforward is not None:
            assert self.feedforward_norm is not None
            y = self.feedforward_norm(x) if self.pre else x
            if isinstance(self.feedforward, MoELayer):
                y, aux = self.feedforward(self.stream.gather(y), lengths)
                y = self.stream.cut(y)
            else:
                y = self.feedforward(y)
            x = self._join(x, y, self.feedforward_norm, self.feedforward_output_norm)
        x = zero_padding(x, own_lengths)
        self.tap("features", lambda: x)
        return x, state, aux

    def _join(self, x: Tensor, y: Tensor, norm: nn.Module, output_norm: nn.Module | None) -> Tensor:
        if output_norm is not None:
            y = output_norm(y)
        if self.training:
            y = self.dropout(y)
        if self.residual:
            y = x + y
        return y if self.pre else norm(y)
