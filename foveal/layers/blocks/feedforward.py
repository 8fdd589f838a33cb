"""Feed-forward layers: a small network applied to each vector separately."""

from collections.abc import Mapping
from typing import ClassVar, Literal

from jaxtyping import Float
from torch import Tensor, nn

from foveal.distributed.tensor_group import ONE_PART, SplitAxes, TensorGroup, axes_below
from foveal.layers.blocks.moe import Experts
from foveal.layers.linear import Linear
from foveal.ops.activation import ACTIVATIONS, Activation

Feedforward = Literal["none", "mlp", "swiglu", "geglu", "highway", "moe"]


class MLP(nn.Module):
    """`W_2 activation(W_1 x + b_1) + b_2` (Vaswani et al. 2017, 3.3, with ReLU).

    Weights start normal with standard deviation 0.02, biases at zero.

    Example:

        >>> tuple(layers.MLP(16, hidden=64)(torch.randn(2, 5, 16)).shape)
        (2, 5, 16)
    """

    group = ONE_PART

    def __init__(self, width: int, hidden: int, activation: Activation = "gelu"):
        super().__init__()
        self.activation: Activation = activation
        self.expand = Linear(width, hidden)
        self.contract = Linear(hidden, width)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for linear in (self.expand, self.contract):
            nn.init.normal_(linear.weight, std=0.02)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return self.contract(ACTIVATIONS[self.activation](self.expand(self.group.enter(x))))

    def split_among(self, group: TensorGroup) -> SplitAxes:
        """Split the hidden units: W_1 by its outputs, W_2 by its inputs (Shoeybi et al. 2019, figure 3a).

        Raises: ValueError: there are too few hidden units.
        """
        group.check_rows(self.expand.out_features, "hidden units")
        self.group = group
        expand, contract = self.expand.split_outputs(), self.contract.split_inputs(group)
        return axes_below("expand", expand) | axes_below("contract", contract)


class GatedMLP(nn.Module):
    """`(f(x W_1) * x W_2) W_3` without biases (Shazeer 2020); a subclass says the activation f.

    Weights start normal with standard deviation 0.02. With hidden = 8D/3 there are as many weights as in an
    MLP with hidden = 4D.
    """

    group = ONE_PART
    activation: ClassVar[Activation]

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.gate = Linear(width, hidden, bias=False)
        self.expand = Linear(width, hidden, bias=False)
        self.contract = Linear(hidden, width, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for linear in (self.gate, self.expand, self.contract):
            nn.init.normal_(linear.weight, std=0.02)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        x = self.group.enter(x)
        return self.contract(ACTIVATIONS[self.activation](self.gate(x)) * self.expand(x))

    def split_among(self, group: TensorGroup) -> SplitAxes:
        """Split the hidden units.

        Raises: ValueError: there are too few.
        """
        group.check_rows(self.expand.out_features, "hidden units")
        self.group = group
        axes = axes_below("gate", self.gate.split_outputs())
        axes |= axes_below("expand", self.expand.split_outputs())
        return axes | axes_below("contract", self.contract.split_inputs(group))


class SwiGLU(GatedMLP):
    """`(silu(x W_1) * x W_2) W_3` without biases (Shazeer 2020).

    Example:

        >>> tuple(layers.SwiGLU(16, hidden=40)(torch.randn(2, 5, 16)).shape)
        (2, 5, 16)
    """

    activation = "silu"


class GeGLU(GatedMLP):
    """`(gelu(x W_1) * x W_2) W_3` without biases (Shazeer 2020), with GELU's approximation by tanh, as in
    Gemma.

    Example:

        >>> tuple(layers.GeGLU(16, hidden=40)(torch.randn(2, 5, 16)).shape)
        (2, 5, 16)
    """

    activation = "gelu-tanh"


GATED: Mapping[str, type[GatedMLP]] = {"swiglu": SwiGLU, "geglu": GeGLU}


class Highway(nn.Module):
    """`g * relu(W x + b) + (1 - g) * x`, `g = sigmoid(W_g x + b_g)` (Srivastava et al. 2015, equation 3).

    The gate's bias starts at -2, so x passes through at first. Weights start normal with standard deviation
    0.02.

    Example:

        >>> tuple(layers.Highway(16)(torch.randn(2, 5, 16)).shape)
        (2, 5, 16)
    """

    def __init__(self, width: int):
        super().__init__()
        self.transform = Linear(width, width)
        self.gate = Linear(width, width)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for linear, bias in ((self.transform, 0.0), (self.gate, -2.0)):
            nn.init.normal_(linear.weight, std=0.02)
            nn.init.constant_(linear.bias, bias)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        g = self.gate(x).sigmoid()
        return g * self.transform(x).relu() + (1 - g) * x


def hidden_width(kind: str, width: int, expansion: float) -> int:
    """Return the hidden units of a layer: `expansion * width`, two thirds of them in a gated MLP."""
    return round(expansion * width * 2 / 3 if kind in GATED else expansion * width)


def make_feedforward(
    kind: Feedforward,
    width: int,
    expansion: float,
    activation: Activation = "gelu",
    experts: int = 8,
    active: int = 2,
    balance: float = 0.01,
    capacity: float = 0.0,
) -> MLP | GatedMLP | Highway | Experts | None:
    """Return the feed-forward layer called `kind`, or None for `none`.

    MLP, gated MLPs and each expert have about `2 * expansion * width^2` weights. `activation` is the
    activation of the MLP and of the experts. Each vector is computed by `active` of the `experts`. `balance`
    is the coefficient of the load balancing loss, and `capacity` the factor of an expert's room (`Experts`).
    """
    hidden = hidden_width(kind, width, expansion)
    if kind == "mlp":
        return MLP(width, hidden, activation)
    if kind in GATED:
        return GATED[kind](width, hidden)
    if kind == "highway":
        return Highway(width)
    if kind == "moe":
        return Experts(width, hidden, experts, active, balance, activation, capacity)
    return None
