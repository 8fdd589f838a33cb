"""Mixture of experts: many small networks, a few of them for each vector."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.tap import Tapped
from foveal.ops.activation import ACTIVATIONS, Activation
from foveal.ops.moe import balance, experts, route
from foveal.ops.padding import present, zero_padding

Aux = dict[str, Float[Tensor, " B"]]
"""Sums within each row that reach the task: an expert layer's load balance, say."""


class Routed(nn.Module, ABC):
    """A feed-forward layer that sends vectors different ways, and says how well they are spread.

    It is told the lengths, since padding must not count, and returns a sum within each row for every one
    of `aux_names`. They are named beforehand because a term's weight is known before the forward pass.
    """

    aux_names: tuple[str, ...]

    @abstractmethod
    def forward(
        self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None
    ) -> tuple[Float[Tensor, "B T D"], Aux]: ...


def aux_names(module: nn.Module) -> list[str]:
    """The names in `aux` of all routed layers inside."""
    routed = (part for part in module.modules() if isinstance(part, Routed))
    return sorted({name for part in routed for name in part.aux_names})


def added(one: Aux, other: Aux) -> Aux:
    """The sums of two parts of a model."""
    return one | {name: one[name] + sums if name in one else sums for name, sums in other.items()}


class Experts(Routed, Tapped):
    """`y = sum_e g_e(x) W_2e activation(W_1e x)` over the `active` likeliest of `count` experts.

    The chances are `softmax(W_r x)`, computed in the weights' own precision under autocast too (Fedus et al.
    2021, 2.4); `ops.routing.route` makes gates of them. `aux["balance"]` is `coefficient` times
    `ops.routing.balance`. An active expert costs as much as an MLP of the same hidden width. All weights
    start normal with deviation 0.02; no biases. Sources: Shazeer et al. 2017, Fedus et al. 2021.
    """

    aux_names = ("balance",)

    def __init__(
        self,
        width: int,
        hidden: int,
        count: int,
        active: int,
        coefficient: float = 0.01,
        activation: Activation = "gelu",
    ):
        super().__init__()
        if not 1 <= active <= count:
            raise ValueError(f"{active} experts can't be active of {count}")
        self.count, self.active, self.coefficient = count, active, coefficient
        self.activate = ACTIVATIONS[activation]
        self.router = nn.Linear(width, count, bias=False)
        self.weight_expand = nn.Parameter(torch.empty(count, hidden, width))
        self.weight_contract = nn.Parameter(torch.empty(count, width, hidden))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for weight in self.parameters():
            nn.init.normal_(weight, std=0.02)

    def forward(
        self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None
    ) -> tuple[Float[Tensor, "B T D"], Aux]:
        x = zero_padding(x, lengths)
        there = None if lengths is None else present(lengths, x.shape[1])
        with torch.autocast(x.device.type, enabled=False):
            chances = F.linear(x.to(self.router.weight.dtype), self.router.weight).softmax(-1)
        chosen, gates = route(chances, self.active, there)
        self.tap("counts", lambda: chosen.flatten().bincount(minlength=self.count + 1)[: self.count])
        self.tap("gates", lambda: self._every_gate(chosen, gates))
        y = experts(
            x.flatten(0, 1),
            chosen.flatten(0, 1),
            gates.flatten(0, 1),
            self.weight_expand,
            self.weight_contract,
            self.activate,
        )
        return y.view_as(x), {"balance": self.coefficient * balance(chances, chosen)}

    def _every_gate(self, chosen: Tensor, gates: Tensor) -> Float[Tensor, "B T E"]:
        every = gates.new_zeros(*gates.shape[:2], self.count + 1)
        return every.scatter(2, chosen, gates)[..., : self.count]
