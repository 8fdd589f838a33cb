"""The built-in recurrent cells: Elman, LSTM and GRU."""

import math
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.layers.mixers.recurrent import RecurrentCell
from foveal.ops.linear import linear
from foveal.ops.recurrent import cells
from foveal.ops.recurrent.gru import gru_kernel, gru_kernel_usable


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


class ElmanCell(_GatedCell):
    """`h_t = tanh(W_h h_(t-1) + W_x x_t + b)`. With ReLU, W_h starts as the identity (Le et al. 2015).

    Example:

        >>> cell = layers.ElmanCell(8, 16)
        >>> p = cell.project(torch.randn(2, 5, 8))  # what depends on the inputs alone
        >>> y, state = cell.step(p[:, 0], {"h": torch.zeros(2, 16)})
        >>> tuple(y.shape)
        (2, 16)
    """

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


class LSTMCell(_GatedCell):
    """The cell of `ops.recurrent.cells.lstm_step`. The forget gate's bias starts at 1 (Gers et al. 2000).

    Example:

        >>> cell = layers.LSTMCell(8, 16)
        >>> p = cell.project(torch.randn(2, 5, 8))
        >>> y, state = cell.step(p[:, 0], {"h": torch.zeros(2, 16), "c": torch.zeros(2, 16)})
        >>> tuple(y.shape), sorted(state)
        ((2, 16), ['c', 'h'])
    """

    def __init__(self, d_in: int, width: int):
        super().__init__(d_in, width, gates=4)
        self.gate_names = ("i", "f", "g", "o")
        self.sizes = {"h": width, "c": width}
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        with torch.no_grad():
            self.bias[self.width : 2 * self.width] = 1.0

    def step(self, p: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        gates = cells.lstm_gates(p, state["h"], self.weight_hidden)
        self.show_gates(*gates)
        h, c = cells.lstm_update(gates, state["c"])
        return h, {"h": h, "c": c}

    def fused(
        self, x: Float[Tensor, "B T D"], state: dict[str, Tensor], lengths: Int[Tensor, " B"] | None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        y, h, c = cells.fused_lstm(x, state["h"], state["c"], self._kernel_weights(), lengths)
        return y, {"h": h, "c": c}


class GRUCell(_GatedCell):
    """The gated recurrent unit. With `reset_after`, the reset gate r multiplies after the recurrent product,
    else before.

    The order of the paper is before the product (Cho et al. 2014). The order of torch and cuDNN is after the
    product, which has an additional bias. Weights trained in one order do not fit the other.

    Example:

        >>> cell = layers.GRUCell(8, 16, reset_after=False)
        >>> p = cell.project(torch.randn(2, 5, 8))
        >>> y, state = cell.step(p[:, 0], {"h": torch.zeros(2, 16)})
        >>> tuple(y.shape)
        (2, 16)
    """

    def __init__(self, d_in: int, width: int, reset_after: bool = True):
        super().__init__(d_in, width, gates=3)
        self.gate_names = ("r", "z")
        self.bias_new = nn.Parameter(torch.empty(width)) if reset_after else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        super().reset_parameters()
        if self.bias_new is not None:
            nn.init.zeros_(self.bias_new)

    def step(self, p: Tensor, state: dict[str, Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
        if self.bias_new is not None:
            r, z, n = cells.gru_gates_reset_after(p, state["h"], self.weight_hidden, self.bias_new)
        else:
            r, z, n = cells.gru_gates_reset_before(p, state["h"], self.weight_hidden)
        self.show_gates(r, z)
        h = cells.gru_update(z, n, state["h"])
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
        return "kernel" if gru_kernel_usable(self.bias_new) else "fused"
