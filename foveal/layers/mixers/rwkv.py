"""RWKV, version 4: time mixing and channel mixing (Peng et al. 2023).

Both also read the previous input, so both are mixers with a state. A layer of RWKV is two blocks, each with
its own norm and residual connection. The initialization is that of the author's code
(github.com/BlinkDL/RWKV-LM, RWKV-v4): all matrices but one in each mixer are zero, and decays, bonuses and
mixing weights differ between channels and layers. `layer`, counted from 0, and `layers` give the mixer's
place in the model.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.core.tap import TappedModule
from foveal.layers.linear import Linear
from foveal.layers.mixers.base import check_input
from foveal.layers.mixers.registry import MixerPlace, MixerSpec, register_mixer
from foveal.ops.padding import last_valid, zero_padding
from foveal.ops.recurrent.rwkv import EMPTY_EXPONENT, wkv
from foveal.plugins.constructor_settings import NoSettings


class TimeMixing(TappedModule):
    """A gated, exponentially decaying mean of values in each channel (Peng et al. 2023, equations 11 to 17).

        r, k, v = W_r, W_k, W_v times (μ x_t + (1 - μ) x_(t-1)), each with its own μ
        y       = W_o (σ(r) * wkv(k, v, w = -exp(decay), u = bonus))

    Initially W_r, W_k and W_o are zero, and W_v is orthogonal. Without a residual connection W_o is
    orthogonal too, since zeros would let neither inputs nor gradients through. With `d = i / (D - 1)`, `l =
    layer / (layers - 1)` and `m = (i / D)^(1 - layer / layers)` in channel i = 0 .. D - 1:

        decay = -5 + 8 d^(0.7 + 1.3 l)
        bonus = ln 0.3 + ((i + 1) mod 3 - 1) / 2
        μ_k = m, μ_v = m + 0.3 l, μ_r = √m

    State, each (B, D): the `last` input, and `numerator`, `denominator`, `exponent` of the sums
    (`ops.recurrent.rwkv`).

    Example:

        >>> y, state = layers.TimeMixing(16)(torch.randn(2, 5, 16))
        >>> tuple(y.shape), sorted(state)
        ((2, 5, 16), ['denominator', 'exponent', 'last', 'numerator'])
    """

    bounded = True

    def __init__(self, width: int, layer: int = 0, layers: int = 1, residual: bool = True):
        super().__init__()
        self.d_in = self.d_out = width
        self.layer, self.layers, self.residual = layer, layers, residual
        self.shapes = dict.fromkeys(("last", "numerator", "denominator", "exponent"), (width,))
        self.mix_receptance = nn.Parameter(torch.empty(width))
        self.mix_key = nn.Parameter(torch.empty(width))
        self.mix_value = nn.Parameter(torch.empty(width))
        self.receptance = Linear(width, width, bias=False)
        self.key = Linear(width, width, bias=False)
        self.value = Linear(width, width, bias=False)
        self.output = Linear(width, width, bias=False)
        self.decay = nn.Parameter(torch.empty(width))
        self.bonus = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        for linear in (self.receptance, self.key, self.output):
            nn.init.zeros_(linear.weight)
        nn.init.orthogonal_(self.value.weight)
        if not self.residual:
            nn.init.orthogonal_(self.output.weight)
        depth = self.layer / max(self.layers - 1, 1)
        channel = torch.arange(self.d_in, device=self.decay.device)
        self.decay.copy_(-5 + 8 * (channel / max(self.d_in - 1, 1)) ** (0.7 + 1.3 * depth))
        self.bonus.copy_(math.log(0.3) + ((channel + 1) % 3 - 1) / 2)
        mix = _initial_mix(self.mix_key, self.layer, self.layers)
        self.mix_key.copy_(mix)
        self.mix_value.copy_(mix + 0.3 * depth)
        self.mix_receptance.copy_(mix.sqrt())

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        state = {name: self.decay.new_zeros(batch, *shape) for name, shape in self.shapes.items()}
        state["exponent"].fill_(EMPTY_EXPONENT)
        return state

    @property
    def scan_flops(self) -> int:
        """The operations of the recurrence at each position, in each channel."""
        return 25 * self.d_in

    def half_lives(self, step_sizes: Tensor | None = None) -> Float[Tensor, "D 1"]:
        """Return after how many steps the weight of a value is half of what it was: `ln 2 / exp(decay)`."""
        return math.log(2) / self.decay.exp()[:, None]

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], State]:
        check_input(x, state, self.shapes, self.decay)
        if state is None:
            state = self.init_state(x.shape[0])
        precise = self.decay.dtype
        x = zero_padding(x, lengths).to(precise)
        last, numerator, denominator, exponent = (state[name].to(precise) for name in self.shapes)
        before, last = _token_shift(x, last, lengths)
        r = self.receptance(torch.lerp(before, x, self.mix_receptance)).sigmoid()
        k = self.key(torch.lerp(before, x, self.mix_key)).to(precise)
        v = self.value(torch.lerp(before, x, self.mix_value)).to(precise)
        sums = (numerator, denominator, exponent)
        mean, sums = wkv(k, v, -self.decay.exp(), self.bonus, sums, lengths)
        self.tap("receptance", lambda: r)
        y = zero_padding(self.output(r * mean), lengths)
        return y, dict(zip(self.shapes, (last, *sums), strict=True))


class ChannelMixing(TappedModule):
    """A gated feed-forward layer that also reads the previous input (Peng et al. 2023, eq. 14, 15, 18).

        r, k = W_r, W_k times (μ x_t + (1 - μ) x_(t-1)), each with its own μ
        y    = σ(r) * W_v max(k, 0)²

    Initially W_r and W_v are zero, W_k is orthogonal times √(hidden / D), and `μ_r = μ_k = m` as in
    `TimeMixing`. Without a residual connection W_v is orthogonal.

    State: the `last` input (B, D).

    Example:

        >>> y, state = layers.ChannelMixing(16, hidden=64)(torch.randn(2, 5, 16))
        >>> tuple(y.shape), sorted(state)
        ((2, 5, 16), ['last'])
    """

    bounded = True

    def __init__(self, width: int, hidden: int, layer: int = 0, layers: int = 1, residual: bool = True):
        super().__init__()
        self.d_in = self.d_out = width
        self.layer, self.layers, self.residual = layer, layers, residual
        self.mix_receptance = nn.Parameter(torch.empty(width))
        self.mix_key = nn.Parameter(torch.empty(width))
        self.receptance = Linear(width, width, bias=False)
        self.key = Linear(width, hidden, bias=False)
        self.value = Linear(hidden, width, bias=False)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        nn.init.zeros_(self.receptance.weight)
        nn.init.zeros_(self.value.weight)
        if not self.residual:
            nn.init.orthogonal_(self.value.weight)
        hidden, width = self.key.weight.shape
        nn.init.orthogonal_(self.key.weight, max(1.0, math.sqrt(hidden / width)))
        for mix in (self.mix_receptance, self.mix_key):
            mix.copy_(_initial_mix(mix, self.layer, self.layers))

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        return {"last": self.mix_key.new_zeros(batch, self.d_in)}

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], State]:
        check_input(x, state, {"last": (self.d_in,)}, self.mix_key)
        if state is None:
            state = self.init_state(x.shape[0])
        x = zero_padding(x, lengths).to(self.mix_key.dtype)
        before, last = _token_shift(x, state["last"].to(x.dtype), lengths)
        r = self.receptance(torch.lerp(before, x, self.mix_receptance)).sigmoid()
        k = self.key(torch.lerp(before, x, self.mix_key)).relu().square()
        self.tap("receptance", lambda: r)
        return zero_padding(r * self.value(k), lengths), {"last": last}


def _token_shift(
    x: Float[Tensor, "B T D"], last: Float[Tensor, "B D"], lengths: Int[Tensor, " B"] | None
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B D"]]:
    """Return the input before each input, starting with `last`, and the last input of each row."""
    before = torch.cat([last[:, None], x[:, :-1]], 1)
    return before, x[:, -1] if lengths is None else last_valid(last, x, lengths)


def _initial_mix(mix: Float[Tensor, " D"], layer: int, layers: int) -> Float[Tensor, " D"]:
    """Return `(i / D)^(1 - layer / layers)`: later layers give the previous input less weight."""
    D = len(mix)
    return (torch.arange(D, device=mix.device) / D) ** (1 - layer / layers)


@register_mixer("rwkv")
class RWKVSpec(MixerSpec[NoSettings]):
    Settings = NoSettings
    same_width = True

    def make(self, place: MixerPlace[NoSettings]) -> TimeMixing:
        return TimeMixing(place.width, place.layer, place.layers, place.residual)
