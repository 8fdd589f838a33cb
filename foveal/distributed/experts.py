"""Ranks that share the experts of a mixture (expert parallelism: Lepikhin et al. 2020, Fedus et al. 2021).

Each `ep` ranks that follow each other have all experts together. All other weights are whole on each rank.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.shapes_only import shapes_only
from foveal.distributed.expert_group import ExpertGroup, ExpertModule
from foveal.distributed.mesh import MeshRanks, own_group
from foveal.distributed.partial import PartialWeights
from foveal.distributed.placement import Placement
from foveal.distributed.tree import Gradients, TreeSum, add_gradients, flatten, unflatten
from foveal.distributed.world import Ranks


class ExpertRanks(MeshRanks):
    """Ranks of which each `ep` share the experts. The processes of a rank may split the layers, too."""

    def __init__(self, process: int, processes: int, ep: int, tp: int = 1):
        super().__init__(process, processes, tp)
        ranks = torch.arange(processes).view(-1, ep, tp)  # (copies of all experts, their parts, of layers)
        copy, place = divmod(self.rank, ep)
        self.sharing = own_group(ranks[copy, :, self.splitting.rank], place)
        self._copies = own_group(ranks[:, place, self.splitting.rank], copy)
        self._of_experts: set[Tensor] = set()

    @property
    def layout(self) -> str:
        return f"{super().layout} --ep {self.sharing.size}".strip()

    def check(self, new_model: Callable[[], nn.Module]) -> str:
        note = super().check(new_model)
        with shapes_only():
            spread(new_model(), ExpertGroup(self.sharing.rank, self.sharing.size))
        return note

    def place(self, model: nn.Module, compute: Callable[..., Any]) -> Placement:
        parts = self.parts(model)
        axes = spread(model, SharedExperts(self.sharing))
        parts.cut_axes(model, axes, self.sharing)
        self._of_experts = {
            parts.tensors[name] for name, weight in model.named_parameters() if weight in axes
        }
        return PartialWeights(parts, self._copies.rank == 0)

    def sum(self, tree: TreeSum[Gradients], weights: Sequence[Tensor]) -> Gradients:
        """Return the sum of the slots of all ranks. The gradients of experts already have the slots of the
        ranks that share them."""
        of_experts = [index for index, weight in enumerate(weights) if weight in self._of_experts]
        others = [index for index, weight in enumerate(weights) if weight not in self._of_experts]
        summed: Gradients = [None] * len(weights)
        for chosen, add in ((of_experts, self._sum_copies), (others, super().sum)):
            chosen_tree = TreeSum[Gradients](tree.slots, add_gradients)
            chosen_tree.nodes = {node: [every[i] for i in chosen] for node, every in tree.nodes.items()}
            totals = add(chosen_tree, [weights[index] for index in chosen]) if chosen else []
            for index, total in zip(chosen, totals, strict=True):
                summed[index] = total
        return summed

    def _sum_copies(self, tree: TreeSum[Gradients], weights: Sequence[Tensor]) -> Gradients:
        return unflatten(self._copies.all_reduce(flatten(tree.own_total(), weights)), weights)


class SharedExperts(ExpertGroup):
    """Several ranks, which compute their experts at the same time."""

    def __init__(self, ranks: Ranks):
        super().__init__(ranks.rank, ranks.size)
        self._ranks = ranks

    def exchange_counts(self, counts: Int[Tensor, " E"]) -> Int[Tensor, "R E_own"]:
        return self._ranks.gather(counts)[:, self.rows(len(counts))]

    def exchange(self, x: Float[Tensor, "N D"], sent: list[int], received: list[int]) -> Float[Tensor, "M D"]:
        exchanged: Tensor = _Exchange.apply(x, sent, received, self._ranks)  # type: ignore[no-untyped-call]
        return exchanged


class _Exchange(torch.autograd.Function):
    """All-to-all; the gradients travel back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, sent: list[int], received: list[int], ranks: Ranks) -> Tensor:
        ctx.sent, ctx.received, ctx.ranks = sent, received, ranks
        return ranks.all_to_all(x, sent, received)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        return ctx.ranks.all_to_all(gradient, ctx.received, ctx.sent), None, None, None


def spread(model: nn.Module, group: ExpertGroup) -> dict[nn.Parameter, int]:
    """Spread the experts of a model over the ranks of a group. Return the axis along which each weight is to
    be cut.

    Raises: UserError: the ranks can't share the experts of a layer, or there are none.
    """
    axis_of = dict[nn.Parameter, int]()
    for path, module in model.named_modules():
        if isinstance(module, ExpertModule):
            try:
                axes = module.spread_among(group)
            except ValueError as error:
                raise UserError(f"--ep {group.size}: {path or 'the model'}: {error}") from None
            axis_of |= {module.get_parameter(name): axis for name, axis in axes.items()}  # type: ignore[attr-defined]
    if not axis_of:
        raise UserError(
            f"--ep {group.size}: this model has no experts: leave out --ep, or set model.feedforward=moe"
        )
    return axis_of
