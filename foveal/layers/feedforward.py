"""Feed-forward layers: a small network on each vector by itself."""

from typing import Literal

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

Aux = dict[str, Float[Tensor, " B"]]
"""Sums within each row that reach the task: an expert layer's load balance, say."""


class Routed(nn.Module):
    """A feed-forward layer that sends vectors different ways, and says how well they are spread.

    It is told the lengths, since padding must not count, and returns a sum within each row for every one
    of `aux_names`. They are named beforehand because a term's weight is known before the forward pass.
    """

    aux_names: tuple[str, ...]

    def forward(
        self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None
    ) -> tuple[Float[Tensor, "B T D"], Aux]:
        raise NotImplementedError


class MLP(nn.Module):
    """`W_2 gelu(W_1 x + b_1) + b_2` (Vaswani et al. 2017, 3.3, with GELU); weights normal, deviation 0.02."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.expand = nn.Linear(width, hidden)
        self.contract = nn.Linear(hidden, width)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for linear in (self.expand, self.contract):
            nn.init.normal_(linear.weight, std=0.02)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return self.contract(F.gelu(self.expand(x)))


class SwiGLU(nn.Module):
    """`(silu(x W_1) * x W_2) W_3` without biases (Shazeer 2020); weights normal, deviation 0.02.

    With hidden = 8D/3 it has as many weights as an MLP with hidden 4D.
    """

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.expand = nn.Linear(width, hidden, bias=False)
        self.contract = nn.Linear(hidden, width, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for linear in (self.gate, self.expand, self.contract):
            nn.init.normal_(linear.weight, std=0.02)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return self.contract(F.silu(self.gate(x)) * self.expand(x))


def make_feedforward(
    kind: Literal["none", "mlp", "swiglu"], width: int, expansion: float
) -> MLP | SwiGLU | None:
    """The layer called `kind` with about `2 * expansion * width^2` weights."""
    if kind == "none":
        return None
    if kind == "mlp":
        return MLP(width, round(expansion * width))
    return SwiGLU(width, round(expansion * width * 2 / 3))
