"""Recurrent mixers: a cell is one step of equations, and `Recurrent` runs the cell along the sequence.

Your own cell needs `sizes`, `project` and `step`. Training, truncated backpropagation, generation and the
tests of the laws then work for it (`examples/own_cell.py`).
"""

import math
from abc import ABC, abstractmethod
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.config.values import StrictModel
from foveal.core.memory import Memory
from foveal.core.state import State
from foveal.core.tap import TappedModule
from foveal.layers.mixers.base import check_input
from foveal.layers.mixers.registry import MixerPlace, MixerSpec, register_mixer
from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.linear import linear
from foveal.ops.padding import zero_padding
from foveal.ops.recurrent import cells
from foveal.ops.recurrent.gru import gru_kernel, gru_kernel_usable


class RecurrentCell(nn.Module, ABC):
    """One step of a recurrence. `sizes` names the parts of its state and their widths."""

    d_in: int
    d_out: int
    sizes: dict[str, int]

    @abstractmethod
    def reset_parameters(self) -> None:
        """Initialize every parameter again."""

    @abstractmethod
    def project(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T P"]:
        """Compute the part of the equations that depends on the input alone, for the whole sequence."""

    @abstractmethod
    def step(self, p: Float[Tensor, "B P"], state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        """Return `y_t, s_t` from `p_t` and `s_(t-1)`."""

    def fused(
        self, x: Float[Tensor, "B T D"], state: dict[str, Tensor], lengths: Int[Tensor, " B"] | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the whole sequence, by a faster way than single steps if there is one.

        Return the outputs, and the state after each row's own length.
        """
        return cells.run_recurrence(self.step, self.project(x), state, lengths)

    def as_mixer(self) -> "Recurrent":
        """Return the mixer that runs the cell."""
        return Recurrent(self)

    def fast_path(self) -> str:
        """Return the name of the path of `fused` for `ops.jit.dispatch`; empty if steps are the fastest."""
        return ""


class Recurrent(TappedModule):
    """The mixer that runs a cell. The initial state is zeros, or a learned vector that all rows share."""

    bounded = True

    def __init__(self, cell: RecurrentCell, learned_start: bool = False):
        super().__init__()
        self.cell = cell
        self.d_in, self.d_out = cell.d_in, cell.d_out
        self.shapes: dict[str, tuple[int, ...] | None] = {name: (size,) for name, size in cell.sizes.items()}
        self.start = nn.ParameterDict(
            {name: nn.Parameter(torch.zeros(size)) for name, size in cell.sizes.items() if learned_start}
        )

    def reset_parameters(self) -> None:
        self.cell.reset_parameters()
        for start in self.start.values():
            nn.init.zeros_(start)

    def init_state(self, batch: int, capacity: int | None = None, memory: Memory | None = None) -> State:
        like = next(self.cell.parameters())
        return {
            name: self.start[name].expand(batch, -1).clone() if self.start else like.new_zeros(batch, size)
            for name, size in self.cell.sizes.items()
        }

    def forward(
        self, x: Float[Tensor, "B T D"], state: State = None, *, lengths: Int[Tensor, " B"] | None = None
    ) -> tuple[Float[Tensor, "B T E"], State]:
        check_input(x, state, self.shapes, next(self.cell.parameters()))
        x = zero_padding(x, lengths)
        if state is None:
            state = self.init_state(x.shape[0])
        # For one position a fused kernel would rearrange the weights first; the step reads them once.
        single_step = x.shape[1] == 1 and not torch.is_grad_enabled()
        path = "" if single_step else self.cell.fast_path()
        if use_fast_path(type(self.cell).__name__, path, bool(path)):
            y, after = self.cell.fused(x, state, lengths)
        else:
            y, after = cells.run_recurrence(self.cell.step, self.cell.project(x), state, lengths)
        # A kernel may compute in lower precision; the state keeps its dtype.
        after = {name: part.to(state[name].dtype) for name, part in after.items()}
        y = zero_padding(y, lengths)
        self.tap("hidden", lambda: y)
        return y, after


class _GatedCell(RecurrentCell):
    """The common part of the built-in cells: `W_x`, `W_h` and one bias, each with `gates` blocks of rows.

    All weights start uniform in +-1/sqrt(H), as in torch, and biases at zero.
    """

    def __init__(self, d_in: int, width: int, gates: int):
        super().__init__()
        self.d_in, self.d_out, self.width = d_in, width, width
        self.sizes = {"h": width}
        self.weight_input = nn.Parameter(torch.empty(gates * width, d_in))
        self.weight_hidden = nn.Parameter(torch.empty(gates * width, width))
        self.bias = nn.Parameter(torch.empty(gates * width))

    def reset_parameters(self) -> None:
        bound = 1 / math.sqrt(self.width)
        nn.init.uniform_(self.weight_input, -bound, bound)
        nn.init.uniform_(self.weight_hidden, -bound, bound)
        nn.init.zeros_(self.bias)

    def project(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T P"]:
        return linear(x, self.weight_input, self.bias)

    def fast_path(self) -> str:
        return "fused"

    def _kernel_weights(self, bias_hidden: Tensor | None = None) -> list[Tensor]:
        if bias_hidden is None:
            bias_hidden = torch.zeros_like(self.bias)
        return [self.weight_input, self.weight_hidden, self.bias, bias_hidden]


class Elman(_GatedCell):
    """`h_t = tanh(W_h h_(t-1) + W_x x_t + b)`. With ReLU, W_h starts as the identity (Le et al. 2015)."""

    def __init__(self, d_in: int, width: int, nonlinearity: Literal["tanh", "relu"] = "tanh"):
        super().__init__(d_in, width, gates=1)
        self.relu = nonlinearity == "relu"
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.relu:
            nn.init.eye_(self.weight_hidden)

    def step(self, p: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        h = cells.elman_step(p, state["h"], self.weight_hidden, self.relu)
        return h, {"h": h}

    def fused(
        self, x: Float[Tensor, "B T D"], state: dict[str, Tensor], lengths: Int[Tensor, " B"] | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        y, h = cells.fused_elman(x, state["h"], self._kernel_weights(), self.relu, lengths)
        return y, {"h": h}


class LSTM(_GatedCell):
    """The cell of `ops.recurrent.cells.lstm_step`. The forget gate's bias starts at 1 (Gers et al. 2000)."""

    def __init__(self, d_in: int, width: int):
        super().__init__(d_in, width, gates=4)
        self.sizes = {"h": width, "c": width}
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        with torch.no_grad():
            self.bias[self.width : 2 * self.width] = 1.0

    def step(self, p: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        h, c = cells.lstm_step(p, state["h"], state["c"], self.weight_hidden)
        return h, {"h": h, "c": c}

    def fused(
        self, x: Float[Tensor, "B T D"], state: dict[str, Tensor], lengths: Int[Tensor, " B"] | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        y, h, c = cells.fused_lstm(x, state["h"], state["c"], self._kernel_weights(), lengths)
        return y, {"h": h, "c": c}


class GRU(_GatedCell):
    """The gated recurrent unit. With `reset_after`, the reset gate r multiplies after the recurrent product,
    else before.

    The order of the paper is before the product (Cho et al. 2014). The order of torch and cuDNN is after the
    product, which has an additional bias. Weights trained in one order do not fit the other.
    """

    def __init__(self, d_in: int, width: int, reset_after: bool = True):
        super().__init__(d_in, width, gates=3)
        self.bias_new = nn.Parameter(torch.empty(width)) if reset_after else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.bias_new is not None:
            nn.init.zeros_(self.bias_new)

    def step(self, p: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        if self.bias_new is not None:
            h = cells.gru_step_reset_after(p, state["h"], self.weight_hidden, self.bias_new)
        else:
            h = cells.gru_step_reset_before(p, state["h"], self.weight_hidden)
        return h, {"h": h}

    def fused(
        self, x: Float[Tensor, "B T D"], state: dict[str, Tensor], lengths: Int[Tensor, " B"] | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        assert self.bias_new is not None
        bias_hidden = F.pad(self.bias_new, (2 * self.width, 0))
        run = gru_kernel if self.fast_path() == "kernel" else cells.fused_gru
        y, h = run(x, state["h"], self._kernel_weights(bias_hidden), lengths)
        return y, {"h": h}

    def fast_path(self) -> str:
        if self.bias_new is None:
            return ""
        return "kernel" if gru_kernel_usable(self.weight_hidden) else "fused"


class LSTMSettings(StrictModel):
    learned_initial_state: bool = False
    """The first state is learned; it is zeros otherwise."""


class ElmanSettings(LSTMSettings):
    nonlinearity: Literal["tanh", "relu"] = "tanh"
    """Activation function of the state: tanh or relu."""


class GRUSettings(LSTMSettings):
    reset_after: bool = True
    """The reset gate multiplies after the recurrent product (cuDNN, torch), not before (Cho)."""


@register_mixer("rnn")
class ElmanSpec(MixerSpec[ElmanSettings]):
    Settings = ElmanSettings

    def make(self, place: MixerPlace[ElmanSettings]) -> Recurrent:
        cell = Elman(place.d_in, place.width, place.settings.nonlinearity)
        return Recurrent(cell, place.settings.learned_initial_state)


@register_mixer("lstm")
class LSTMSpec(MixerSpec[LSTMSettings]):
    Settings = LSTMSettings

    def make(self, place: MixerPlace[LSTMSettings]) -> Recurrent:
        return Recurrent(LSTM(place.d_in, place.width), place.settings.learned_initial_state)


@register_mixer("gru")
class GRUSpec(MixerSpec[GRUSettings]):
    Settings = GRUSettings

    def make(self, place: MixerPlace[GRUSettings]) -> Recurrent:
        cell = GRU(place.d_in, place.width, place.settings.reset_after)
        return Recurrent(cell, place.settings.learned_initial_state)
