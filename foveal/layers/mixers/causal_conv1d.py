"""Causal convolution as a mixer. Its state is the last inputs, which later outputs still read."""

import math

import torch
from jaxtyping import Float, Int
from pydantic import field_validator
from torch import Tensor, nn

from foveal.config.values import MAX_SIZE, Size, StrictModel
from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.layers.mixers.base import check_input, state_dtype
from foveal.layers.mixers.registry import MixerPlace, MixerSpec, register_mixer
from foveal.ops.causal_conv1d import causal_conv1d, updated_history
from foveal.ops.padding import zero_padding


class CausalConv1d(nn.Module):
    """`y_t = b + sum_j W_j x_(t - (K-1-j) dilation)`, K = `kernel` (van den Oord et al. 2016, 2.1).

    The mixer is linear; the nonlinearity is in the block's feed-forward layer. An output reads `1 + (K-1)
    dilation` inputs. In a stack it reads 1 + the sum of (K-1) dilation over the layers (all strides are 1).
    Weights start uniform in +-1/sqrt(D K), as torch's, and the bias at zero.

    State: `inputs` (B, `reach`, D), the last (K-1) dilation inputs, initially zeros.

    Example:

        >>> y, state = layers.CausalConv1d(8, 16, kernel=3, dilation=2)(torch.randn(2, 5, 8))
        >>> tuple(y.shape), tuple(state["inputs"].shape)
        ((2, 5, 16), (2, 4, 8))

    Raises: ValueError: `kernel` or `dilation` is below 1.
    """

    bounded = True

    def __init__(self, d_in: int, width: int, kernel: int, dilation: int = 1):
        super().__init__()
        if kernel < 1 or dilation < 1:
            raise ValueError(f"a kernel of {kernel} and a dilation of {dilation}: both must be at least 1")
        self.d_in, self.d_out, self.dilation = d_in, width, dilation
        self.reach = (kernel - 1) * dilation
        self.weight = nn.Parameter(torch.empty(width, d_in, kernel))
        self.bias = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.weight[0].numel())
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.zeros_(self.bias)

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        dtype = state_dtype(self.weight)
        return {"inputs": self.weight.new_zeros(batch, self.reach, self.d_in, dtype=dtype)}

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T E"], State]:
        check_input(x, state, {"inputs": (self.reach, self.d_in)}, self.weight)
        if state is None:
            state = self.init_state(x.shape[0])
        x, history = zero_padding(x, lengths), state["inputs"]
        y = zero_padding(causal_conv1d(x, history, self.weight, self.bias, self.dilation), lengths)
        return y, {"inputs": updated_history(history, x, lengths)}


class ConvolutionSettings(StrictModel):
    kernel_size: Size = 3
    """Inputs that each output sees."""
    dilations: str = "1"
    """Steps between the inputs of an output, a pattern over the layers such as 1,2,4,8."""

    @field_validator("dilations")
    @classmethod
    def _numbers(cls, pattern: str) -> str:
        for step in pattern.split(","):
            if not (step.strip().isdecimal() and 1 <= int(step) <= MAX_SIZE):
                raise ValueError(f"expected numbers from 1 to {MAX_SIZE}, such as 1,2,4,8")
        return pattern


@register_mixer("conv")
class ConvolutionSpec(MixerSpec[ConvolutionSettings]):
    Settings = ConvolutionSettings

    def make(self, place: MixerPlace[ConvolutionSettings]) -> CausalConv1d:
        dilations = place.settings.dilations.split(",")
        dilation = int(dilations[place.layer % len(dilations)])
        return CausalConv1d(place.d_in, place.width, place.settings.kernel_size, dilation)
