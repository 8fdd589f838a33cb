"""S5, the simplified state space layer: a linear differential equation as a mixer."""

import math

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor, nn

from foveal.config.values import Size, StrictModel
from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.layers.linear import Linear
from foveal.layers.mixers.base import check_input
from foveal.layers.mixers.registry import MixerPlace, MixerSpec, StackFacts, register_mixer
from foveal.ops.gelu import gelu
from foveal.ops.linear import linear
from foveal.ops.padding import last_valid, zero_padding
from foveal.ops.ssm.linear_scan import linear_scan

STEP_RANGE = (0.001, 0.1)
"""The range of the first step lengths."""


class S5(nn.Module):
    """`s' = A s + B x`, `y = C s + D * x`, `g = gelu(y)`, and the output is `g * sigmoid(W g + b)`.

    The simplified state space layer (Smith et al. 2023). A is diagonal and complex. The input x is constant
    during each step, and each state has its own step length `delta`, so that exactly

        s_t = exp(delta A) s_(t-1) + (exp(delta A) - 1) / A * B x_t        (zero-order hold)

    The states come in conjugate pairs, and only one state of each pair is stored, N = `states` in all, so
    `C s` is `2 Re(C s)`. A has the real part `-exp(log_rate)`, so the state never explodes.

    A starts as the eigenvalues of HiPPO-N, once for each of `blocks` blocks. B and C start as real normal
    matrices (standard deviations 1/sqrt(width) and 1/sqrt(2N)) in the basis of the eigenvectors, D normal,
    `delta` log-uniform in `STEP_RANGE`, W normal with standard deviation 0.02, and b zero.

    State: `s` (B, N, 2), real and imaginary parts, initially zeros.

    Example:

        >>> y, state = layers.S5(16, states=8, blocks=2)(torch.randn(2, 5, 16))
        >>> tuple(y.shape), tuple(state["s"].shape)
        ((2, 5, 16), (2, 8, 2))

    Raises: ValueError: `blocks` does not divide `states`.
    """

    bounded = True

    def __init__(self, width: int, states: int, blocks: int):
        super().__init__()
        if states % blocks:
            raise ValueError(f"{states} states are not a multiple of {blocks} blocks")
        self.d_in = self.d_out = self.width = width
        self.states, self.blocks = states, blocks
        self.log_rate = nn.Parameter(torch.empty(self.states))
        self.frequency = nn.Parameter(torch.empty(self.states))
        self.log_step = nn.Parameter(torch.empty(self.states))
        self.into = nn.Parameter(torch.empty(self.states, 2, width))
        self.out = nn.Parameter(torch.empty(width, self.states, 2))
        self.feedthrough = nn.Parameter(torch.empty(width))
        self.gate = Linear(width, width)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        size = 2 * self.states // self.blocks
        values, vectors = hippo_normal(size)
        vectors = vectors.to(self.into.device, self.into.dtype.to_complex())
        self.log_rate.copy_((-values.real).log().repeat(self.blocks))
        self.frequency.copy_(values.imag.repeat(self.blocks))
        nn.init.uniform_(self.log_step, math.log(STEP_RANGE[0]), math.log(STEP_RANGE[1]))
        into = self.into.new_empty(self.blocks, size, self.width).normal_(std=1 / math.sqrt(self.width))
        out = self.out.new_empty(self.width, self.blocks, size).normal_(std=1 / math.sqrt(2 * self.states))
        into = torch.view_as_real((vectors.mH @ into.to(vectors.dtype)).flatten(0, 1))
        self.into.copy_(into.transpose(1, 2))
        self.out.copy_(torch.view_as_real((out.to(vectors.dtype) @ vectors).flatten(1)))
        nn.init.normal_(self.feedthrough)
        nn.init.normal_(self.gate.weight, std=0.02)
        nn.init.zeros_(self.gate.bias)

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        return {"s": self.log_rate.new_zeros(batch, self.states, 2)}

    def discretized(self) -> tuple[Complex[Tensor, " N"], Complex[Tensor, " N"]]:
        """Return the factor by which each state decays in a step, and the factor of its input."""
        A = torch.complex(-self.log_rate.exp(), self.frequency)
        exponent = A * self.log_step.exp()
        return exponent.exp(), exponent.expm1() / A

    @property
    def scan_flops(self) -> int:
        """The operations of the scan at each position: a complex product and a complex sum for each state."""
        return 8 * self.states

    def half_lives(self, step_sizes: Tensor | None = None) -> Float[Tensor, "N 1"]:
        """Return after how many steps each state is half of what it was: `ln 2 / (-delta Re A)`."""
        return math.log(2) / (self.log_rate + self.log_step).exp()[:, None]

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T D"], State]:
        check_input(x, state, {"s": (self.states, 2)}, self.log_rate)
        if state is None:
            state = self.init_state(x.shape[0])
        x = zero_padding(x, lengths)
        decay, input_factor = self.discretized()
        # Complex products as real products of parts side by side. The scan has full precision.
        v = linear(x, self.into.flatten(0, 1)).to(self.log_rate.dtype).view(*x.shape[:2], self.states, 2)
        initial = state["s"].to(self.log_rate.dtype)
        states = linear_scan(decay, input_factor * torch.view_as_complex(v), torch.view_as_complex(initial))
        pairs = torch.view_as_real(states).flatten(2)
        mirrored = torch.view_as_real(2 * states.conj().resolve_conj()).flatten(2)
        twice_real = linear(mirrored, self.out.flatten(1))
        hidden = gelu(twice_real + self.feedthrough * x)
        y = hidden * self.gate(hidden).sigmoid()
        last = pairs[:, -1] if lengths is None else last_valid(initial.flatten(1), pairs, lengths)
        return zero_padding(y, lengths), {"s": last.view_as(initial)}


def hippo_normal(size: int) -> tuple[Complex[Tensor, " N"], Complex[Tensor, "P N"]]:
    """Return the eigenvalues of HiPPO-N with positive imaginary part, and their eigenvectors. N = `size` / 2.

    HiPPO-LegS is `A_nk = -sqrt((2n+1)(2k+1))` below the diagonal, -(n+1) on the diagonal and 0 above it (Gu
    et al. 2020). Its normal part adds `p p^T` with `p_n = sqrt(n + 1/2)`. That leaves -1/2 on the diagonal,
    and an antisymmetric matrix S beside it (Gu et al. 2022). The eigenvalues are -1/2 + i w, where w are
    those of the Hermitian matrix -iS.
    """
    p = (torch.arange(size, dtype=torch.float64, device="cpu") + 0.5).sqrt()
    antisymmetric = torch.outer(p, p).triu(1) - torch.outer(p, p).tril(-1)
    frequencies, vectors = torch.linalg.eigh(-1j * antisymmetric)  # from the lowest to the highest
    positive = slice(size // 2, None)
    values = torch.complex(torch.full_like(frequencies, -0.5), frequencies)
    return values[positive], vectors[:, positive]


class S5Settings(StrictModel):
    state_size: Size = 64
    """Number of complex states, half of as many conjugate pairs."""
    blocks: Size = 4
    """Blocks of the first state matrix, each a HiPPO matrix."""


@register_mixer("s5")
class S5Spec(MixerSpec[S5Settings]):
    Settings = S5Settings
    same_width = True

    def make(self, place: MixerPlace[S5Settings]) -> S5:
        return S5(place.width, place.settings.state_size, place.settings.blocks)

    def check(self, settings: S5Settings, stack: StackFacts) -> None:
        if settings.state_size % settings.blocks:
            section = f"{stack.section}.{self.section}"
            raise ValueError(
                f"{section}.state_size={settings.state_size} is not a multiple of "
                f"{section}.blocks={settings.blocks}"
            )
