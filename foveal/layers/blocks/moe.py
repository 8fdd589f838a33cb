"""Mixture of experts: many small networks, of which a few compute each vector."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.tap import TappedModule
from foveal.distributed.expert_group import ALL_EXPERTS, ExpertGroup
from foveal.distributed.tensor_group import SplitAxes
from foveal.ops.activation import ACTIVATIONS, Activation
from foveal.ops.moe import apply_experts, drop_above_capacity, load_balancing_loss, top_k_routing
from foveal.ops.padding import sequence_mask, zero_padding
from foveal.ops.spread_experts import apply_spread_experts

AuxLosses = dict[str, Float[Tensor, " B"]]
"""Sums within each row for the objective, such as an expert layer's load balancing loss."""


class MoELayer(nn.Module, ABC):
    """A feed-forward layer that routes vectors to experts, and measures how evenly they are spread.

    The layer gets the lengths, since padding must not count. For each of `aux_names` it returns a sum within
    each row. The names are known in advance because the weight of a term is needed before the forward pass.
    """

    aux_names: tuple[str, ...]
    reads_whole_rows = True
    """Ranks that cut a stream give the layer all positions."""

    @abstractmethod
    def forward(
        self, x: Float[Tensor, "B T D"], lengths: Int[Tensor, " B"] | None
    ) -> tuple[Float[Tensor, "B T D"], AuxLosses]: ...


MEASURED_AUX = {"dropped"}
"""The names in `aux` of what is measured, and does not count in the objective."""


def aux_names(module: nn.Module) -> list[str]:
    """Return the keys in `aux` of all expert layers of a module."""
    layers = (layer for layer in module.modules() if isinstance(layer, MoELayer))
    return sorted({name for layer in layers for name in layer.aux_names})


def add_aux(first: AuxLosses, second: AuxLosses) -> AuxLosses:
    """Return the sums of the `aux` of two parts of a model."""
    return first | {name: first[name] + sums if name in first else sums for name, sums in second.items()}


class Experts(MoELayer, TappedModule):
    """`y = sum_e g_e(x) W_2e activation(W_1e x)` over the `active` likeliest of `count` experts.

    The probabilities are `softmax(W_r x)`, computed in the precision of the weights even under autocast
    (Fedus et al. 2021, 2.4). `ops.moe.top_k_routing` turns them into gates. `aux["balance"]` is `coefficient`
    times `ops.moe.load_balancing_loss`. An active expert costs as much as an MLP of the same hidden width.

    With a `capacity` c, an expert has room for c times its equal share of a row in training
    (`ops.moe.drop_above_capacity`). A vector that finds no room at an expert is not computed by that expert,
    and counts in `aux["dropped"]`. In evaluation every expert has room for all.

    All weights start normal with standard deviation 0.02; there are no biases. Sources: Shazeer et al. 2017,
    Fedus et al. 2021.

    Example:

        >>> y, aux = layers.Experts(16, hidden=32, count=4, active=2)(torch.randn(2, 5, 16), None)
        >>> tuple(y.shape), tuple(aux["balance"].shape)
        ((2, 5, 16), (2,))

    Raises: ValueError: more experts are active than there are.
    """

    group = ALL_EXPERTS

    def __init__(
        self,
        width: int,
        hidden: int,
        count: int,
        active: int,
        coefficient: float = 0.01,
        activation: Activation = "gelu",
        capacity: float = 0.0,
    ):
        super().__init__()
        if not 1 <= active <= count:
            raise ValueError(f"{active} experts can't be active of {count}")
        self.count, self.active, self.coefficient, self.capacity = count, active, coefficient, capacity
        self.aux_names = ("balance", "dropped") if capacity else ("balance",)
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
    ) -> tuple[Float[Tensor, "B T D"], AuxLosses]:
        x = zero_padding(x, lengths)
        valid = None if lengths is None else sequence_mask(lengths, x.shape[1])
        with torch.autocast(x.device.type, enabled=False):
            probabilities = F.linear(x.to(self.router.weight.dtype), self.router.weight).softmax(-1)
        chosen, gates = top_k_routing(probabilities, self.active, valid)
        aux = {"balance": self.coefficient * load_balancing_loss(probabilities, chosen)}
        expert_ids = chosen
        if self.capacity:
            if self.training:
                expert_ids = drop_above_capacity(chosen, self.count, self.capacity)
            aux["dropped"] = (expert_ids != chosen).flatten(1).sum(1).to(probabilities.dtype)
        self.tap("counts", lambda: expert_ids.flatten().bincount(minlength=self.count + 1)[: self.count])
        self.tap("gates", lambda: self._dense_gates(expert_ids, gates))
        y = self._compute(x.flatten(0, 1), expert_ids.flatten(0, 1), gates.flatten(0, 1))
        return y.view_as(x), aux

    def spread_among(self, group: ExpertGroup) -> SplitAxes:
        """Spread the experts over the ranks.

        Raises: ValueError: there are too few.
        """
        group.check_rows(self.count, "experts")
        self.group = group
        return {"weight_expand": 0, "weight_contract": 0}

    def _compute(
        self, x: Float[Tensor, "N D"], expert_ids: Int[Tensor, "N A"], gates: Float[Tensor, "N A"]
    ) -> Float[Tensor, "N D"]:
        weights = self.weight_expand, self.weight_contract
        if self.group is ALL_EXPERTS:
            return apply_experts(x, expert_ids, gates, *weights, self.activate)
        return apply_spread_experts(x, expert_ids, gates, *weights, self.activate, self.count, self.group)

    def _dense_gates(self, expert_ids: Tensor, gates: Tensor) -> Float[Tensor, "B T E"]:
        dense = gates.new_zeros(*gates.shape[:2], self.count + 1)
        return dense.scatter(2, expert_ids, gates)[..., : self.count]
