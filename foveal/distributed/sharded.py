"""Ranks that share the weights: each holds a part of every weight, of its gradient and of its optimizer's
state (ZeRO stage 3, Rajbhandari et al. 2020; FSDP, Zhao et al. 2023), by `torch.distributed.fsdp`.

The weights of a block are gathered before the block computes, and freed afterwards. In the backward pass they
are gathered again, and the gradients are added up over the ranks so that each receives those of its part.
Weights that autocast would convert to bfloat16 are gathered in bfloat16; the parts and the sums are float32.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, register_fsdp_forward_method
from torch.distributed.tensor import DTensor

from foveal.core.runtime import autocast
from foveal.distributed.bfloat16_weights import bfloat16_weights
from foveal.distributed.mesh import MeshRanks
from foveal.distributed.partial import AxisCut, PartialWeights, Parts
from foveal.distributed.placement import Placement
from foveal.distributed.tree import Gradients, TreeSum
from foveal.distributed.weight_groups import WeightGroups
from foveal.distributed.world import Ranks, lost_rank_ends


class ShardedRanks(MeshRanks):
    """Ranks that share the weights. The processes of a rank may split the layers, too."""

    @property
    def layout(self) -> str:
        return f"{super().layout} --fsdp".strip()

    def place(self, model: nn.Module, compute: Callable[..., Any]) -> Placement:
        parts, converted = self.parts(model), bfloat16_weights(model, compute)
        own = {name for name, weight in model.named_parameters() if weight in converted}
        return ShardedWeights(model, self, parts, set.intersection(*self.exchange(own)))

    def sum(self, tree: TreeSum[Gradients], weights: Any) -> Gradients:
        """Return the sum of the own slots, whose gradients are already added up over the ranks."""
        return self.sum_streams(tree.own_total(), weights)


class ShardedWeights(PartialWeights):
    """The weights of a model whose rows, the entries along the first axis, the `ranks` share. `parts` are
    those that the processes of a rank hold. The weights of the names `in_bfloat16` are gathered so.

    Weights without an axis stay whole on each rank.
    """

    def __init__(self, model: nn.Module, ranks: Ranks, parts: Parts, in_bfloat16: set[str]):
        device = next(model.parameters()).device
        weights = dict(model.named_parameters())
        shapes = {name: weight.shape for name, weight in weights.items()}
        kept = {weight for weight in weights.values() if not weight.dim()}
        groups = WeightGroups(ranks, device, {weights[name] for name in in_bfloat16} - kept, kept)
        self._root = _Root(model)
        blocks = [*sharded_blocks(model)]
        for module in (*blocks, self._root):
            groups.share(module)
        for block in blocks:
            if hasattr(block, "init_state"):  # it may be learned, or be computed from a memory
                register_fsdp_forward_method(block, "init_state")
        for module in self._root.modules():
            if isinstance(module, FSDPModule):  # sums, not means
                module.set_gradient_divide_factor(1.0)
                module.set_force_sum_reduction_for_comms(device.type == "cpu")
        # A state is never changed in place, so views in it are safe.
        warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view", UserWarning)
        with torch.no_grad():  # FSDP makes its buffers at the first use, which must not be in inference mode
            self._root(lambda: None)
            for module in (*blocks, self._root):
                module.unshard()  # type: ignore[operator]
                module.reshard()  # type: ignore[operator]
        self._ranks = ranks
        self._autocast = partial(autocast, device, "bfloat16" if in_bfloat16 else "float32")
        parts.groups.append(ranks)
        for name, weight in model.named_parameters():
            part = weight.detach()
            if isinstance(part, DTensor):
                parts.cut(name, part.to_local(), AxisCut(ranks, 0, shapes[name][0]))
            else:
                parts.tensors[name] = part
        super().__init__(parts)

    def take_gradient(self, weight: nn.Parameter) -> Tensor | None:
        gradient, weight.grad = weight.grad, None
        if gradient is None:
            return None
        return gradient.to_local() if isinstance(gradient, DTensor) else self._ranks.gather(gradient).sum(0)

    def computing(self, objective: Any) -> Any:
        return _ShardedObjective(objective, self._root, self._autocast)


class _Root(nn.Module):
    """Any computation with the model. The weights outside of its blocks are gathered meanwhile."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, work: Callable[[], Any]) -> Any:
        return work()


class _ShardedObjective:
    """An objective that computes with shared weights. `autocast` is for those in bfloat16."""

    def __init__(self, objective: Any, root: Any, autocast: Callable[[], AbstractContextManager[object]]):
        self._objective, self._root, self._autocast = objective, root, autocast
        self.reads_whole_batch = getattr(objective, "reads_whole_batch", False)

    def __call__(self, batch: Any, carry: Any) -> Any:
        def work() -> Any:
            output, after = self._objective(batch, carry)
            # FSDP finds the tensors in what a module returns, if these are in lists and dictionaries.
            return output, after, [term.sum for term in output.terms.values()]

        return self._run(work)[:2]

    def weights(self, batch: Any) -> dict[str, float]:
        weights: dict[str, float] = self._objective.weights(batch)
        return weights

    def start(self, batch: Any) -> Any:
        return self._run(lambda: self._objective.start(batch))

    def preview(self, step: int) -> str | None:
        with self._autocast():
            text: str | None = self._run(lambda: self._objective.preview(step))
        return text

    def _run(self, work: Callable[[], Any]) -> Any:
        """Compute with the weights. Without gradients, no backward pass frees them, and the weights may have
        changed in place since they were gathered."""
        with lost_rank_ends():
            if not torch.is_grad_enabled():
                self._root.reshard()
            try:
                return self._root(work)
            except Exception:
                self._root.reset_iter_state()
                raise
            finally:
                if not torch.is_grad_enabled():
                    self._root.reshard()


def sharded_blocks(model: nn.Module) -> Iterator[nn.Module]:
    """Yield the modules whose weights are gathered when they compute: the elements of the outermost lists of
    modules."""
    for module in model.children():
        if not isinstance(model, nn.ModuleList) or isinstance(module, nn.ModuleList | nn.ModuleDict):
            yield from sharded_blocks(module)
        elif any(True for _ in module.parameters()):
            yield module
