"""Mamba, version 1: a short convolution, then a selective state space model, in a gated mixer."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.config.values import Size, StrictModel
from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.core.tap import TappedModule
from foveal.layers.linear import Linear
from foveal.layers.mixers.base import check_input
from foveal.layers.mixers.registry import MixerPlace, MixerSpec, register_mixer
from foveal.ops.causal_conv1d import updated_history
from foveal.ops.linear import linear
from foveal.ops.padding import zero_padding
from foveal.ops.ssm.depthwise_conv1d import depthwise_conv1d_silu
from foveal.ops.ssm.mamba_delta import mamba_delta
from foveal.ops.ssm.mamba_gate import mamba_gate
from foveal.ops.ssm.selective_scan import selective_scan

MIN_DELTA, MAX_DELTA = 0.001, 0.1
"""The range of the first step sizes."""


class Mamba(TappedModule):
    """A short convolution, then a selective state space model (Gu and Dao 2023, 3.4 and figure 3).

    There are E = `expansion` D channels of N = `states` states each:

        u, z    = W_in x
        u       = silu(convolution(u))                    each channel by itself, `kernel` inputs
        r, B, C = W_select u                              R, N and N numbers; R = `rank`, 0 means D/16
        delta   = softplus(W_delta r + b_delta)
        y       = selective_scan(u, delta, -exp(A_log), B, C) + skip * u
        output  = W_out (y * silu(z))

    The initialization is the authors': A = -(1 .. N) in each channel, `skip` 1, delta log-uniform between
    0.001 and 0.1 for r = 0, W_delta uniform in +-1/sqrt(R). All other weights are uniform in +-1/sqrt(number
    of inputs).

    State: `inputs` (B, kernel - 1, E), the convolution's last inputs, and `h` (B, E, N); initially zeros.

    Example:

        >>> y, state = layers.Mamba(16)(torch.randn(2, 5, 16))
        >>> tuple(y.shape), tuple(state["h"].shape)
        ((2, 5, 16), (2, 32, 16))
    """

    no_decay = ("A_log", "convolution_weight")

    bounded = True

    def __init__(self, width: int, expansion: int = 2, states: int = 16, kernel: int = 4, rank: int = 0):
        super().__init__()
        self.d_in = self.d_out = width
        self.inner, self.states, self.rank = expansion * width, states, rank or math.ceil(width / 16)
        self.shapes = {"inputs": (kernel - 1, self.inner), "h": (self.inner, states)}
        self.input = Linear(width, 2 * self.inner, bias=False)
        self.convolution_weight = nn.Parameter(torch.empty(self.inner, kernel))
        self.convolution_bias = nn.Parameter(torch.empty(self.inner))
        self.selection = Linear(self.inner, self.rank + 2 * states, bias=False)
        self.delta = Linear(self.rank, self.inner)
        self.A_log = nn.Parameter(torch.empty(self.inner, states))
        self.skip = nn.Parameter(torch.empty(self.inner))
        self.output = Linear(self.inner, width, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        matrices = (layer.weight for layer in (self.input, self.selection, self.delta, self.output))
        for weight in (*matrices, self.convolution_weight):
            bound = 1 / math.sqrt(weight.shape[1])
            nn.init.uniform_(weight, -bound, bound)
        nn.init.zeros_(self.convolution_bias)
        nn.init.ones_(self.skip)
        with torch.no_grad():
            self.A_log.copy_(torch.arange(1, self.states + 1, device=self.A_log.device).log())
            delta = self.delta.bias.uniform_(math.log(MIN_DELTA), math.log(MAX_DELTA)).exp_()
            delta.add_((-delta).expm1().neg().log())  # the inverse of softplus

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        return {name: self.A_log.new_zeros(batch, *shape) for name, shape in self.shapes.items()}

    @property
    def scan_flops(self) -> int:
        """The operations of convolution and scan at each position: in each channel 2 for each input of the
        convolution, 7 for each state, and 1."""
        return self.inner * (2 * self.convolution_weight.shape[1] + 7 * self.states + 1)

    def half_lives(self, step_sizes: Float[Tensor, " E"]) -> Float[Tensor, "E N"]:
        """Return after how many steps of a size each state is half of what it was: `ln 2 / (-delta A)`."""
        return math.log(2) / (step_sizes[:, None] * self.A_log.exp())

    @contextmanager
    def constant_steps(self, step_sizes: Float[Tensor, " E"]) -> Iterator[None]:
        """Let every step have these sizes meanwhile, whatever the input."""
        weight, bias = self.delta.weight, self.delta.bias
        kept = weight.detach().clone(), bias.detach().clone()
        with torch.no_grad():
            weight.zero_()
            bias.copy_(step_sizes + (-step_sizes).expm1().neg().log())  # the inverse of softplus
        try:
            yield
        finally:
            with torch.no_grad():
                for parameter, values in zip((weight, bias), kept, strict=True):
                    parameter.copy_(values)

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], State]:
        check_input(x, state, self.shapes, self.A_log)
        if state is None:
            state = self.init_state(x.shape[0])
        # Two products. The gradient of a single product would be assembled from those of its halves.
        x = zero_padding(x, lengths)
        inputs, z = (linear(x, weight) for weight in self.input.weight.chunk(2))
        history = state["inputs"]
        u = depthwise_conv1d_silu(inputs, history, self.convolution_weight, self.convolution_bias)
        r, B, C = self.selection(u).split([self.rank, self.states, self.states], 2)
        # A step of 0 leaves the state as it is.
        delta = zero_padding(mamba_delta(linear(r, self.delta.weight), self.delta.bias), lengths)
        y, h = selective_scan(u, delta, -self.A_log.exp(), B, C, state["h"])
        self.tap("delta", lambda: delta)
        self.tap("u", lambda: u)
        self.tap("B", lambda: B)
        self.tap("C", lambda: C)
        scanned = y
        self.tap("y", lambda: scanned)
        y = self.output(mamba_gate(y, u, self.skip, z))
        return zero_padding(y, lengths), {"inputs": updated_history(history, inputs, lengths), "h": h}


class MambaSettings(StrictModel):
    expand: Size = 2
    """Inner width over the width of the stack."""
    state_size: Size = 16
    """States of each inner channel."""
    conv_kernel: Size = 4
    """Inputs that each output of the short convolution sees."""


@register_mixer("mamba")
class MambaSpec(MixerSpec[MambaSettings]):
    Settings = MambaSettings
    same_width = True

    def make(self, place: MixerPlace[MambaSettings]) -> Mamba:
        settings = place.settings
        return Mamba(place.width, settings.expand, settings.state_size, settings.conv_kernel)
