"""Processes as a grid (pipeline stages, ranks, parts of a layer), the last innermost.

The processes of a rank compute the same rows: they split the layers, or the blocks, of the model. The same
places of different ranks add up their gradients.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist

from foveal.core.shapes_only import shapes_only
from foveal.distributed.partial import PartialWeights, Parts, whole_parts
from foveal.distributed.placement import Placement
from foveal.distributed.split import describe_whole, split
from foveal.distributed.split_group import SplitGroup
from foveal.distributed.tensor_group import TensorGroup
from foveal.distributed.tree import Gradients, TreeSum, flatten, unflatten
from foveal.distributed.world import Ranks


class MeshRanks(Ranks):
    """Processes of which each `tp` split the layers of a model, and each `pp` are a pipeline."""

    shares_weights = True

    def __init__(self, process: int, processes: int, tp: int = 1, pp: int = 1):
        grid = torch.arange(processes).view(pp, processes // (pp * tp), tp)
        stage, rank, part = (int(place) for place in (grid == process).nonzero()[0])
        self.splitting = own_group(grid[stage, rank], part)
        self.piping = own_group(grid[:, rank, part], stage)
        adding = own_group(grid[stage, :, part], rank)
        super().__init__(rank, grid.shape[1], adding.group)
        self.processes, self._process = processes, process
        self._parts = Parts()
        self._in_streams: list[str] = []
        """The names of the weights that compute with a cut stream."""
        self._everyone = Ranks(process, processes)

    @property
    def process(self) -> int:
        return self._process

    @property
    def layout(self) -> str:
        degrees = {"--tp": self.splitting.size, "--pp": self.piping.size}
        return " ".join(f"{option} {degree}" for option, degree in degrees.items() if degree > 1)

    def by_rank(self, messages: list[Any]) -> list[Any]:
        last_stage = messages[-self.size * self.splitting.size :]
        return last_stage[:: self.splitting.size]

    def exchange(self, message: Any) -> list[Any]:
        return self._everyone.exchange(message)

    def check(self, new_model: Callable[[], nn.Module]) -> str:
        if self.splitting.size == 1:
            return ""
        with shapes_only():
            model = new_model()
            weights = split(model, TensorGroup(self.splitting.rank, self.splitting.size))
            return describe_whole(model, weights, self.splitting.size)

    def place(self, model: nn.Module, compute: Callable[..., Any]) -> Placement:
        return PartialWeights(self.parts(model), self.rank == 0)

    def parts(self, model: nn.Module) -> Parts:
        """Split the layers of a model, if processes split them. Return the own parts."""
        parts = whole_parts(model)
        if self.splitting.size > 1:
            assert self.splitting.group is not None
            weights = split(model, SplitGroup(self.splitting.group))
            named = model.named_parameters()
            self._in_streams = [name for name, weight in named if weight in weights.in_streams]
            parts.cut_axes(model, weights.axis_of, self.splitting)
        self._parts = parts
        return parts

    def sum(self, tree: TreeSum[Gradients], weights: Sequence[Tensor]) -> Gradients:
        return self.sum_streams(super().sum(tree, weights), weights)

    def sum_streams(self, gradients: Gradients, weights: Sequence[Tensor]) -> Gradients:
        """Return gradients with those of the weights of cut streams summed over the processes of the rank.
        `weights` are the own parts of the trained weights."""
        in_streams = {self._parts.tensors[name] for name in self._in_streams}
        chosen = [index for index, weight in enumerate(weights) if weight in in_streams]
        summed = list(gradients)
        if chosen:
            own = [weights[index] for index in chosen]
            flat = self.splitting.all_reduce(flatten([gradients[index] for index in chosen], own))
            for index, total in zip(chosen, unflatten(flat, own), strict=True):
                summed[index] = total
        return summed


def own_group(processes: Tensor, place: int) -> Ranks:
    """Return the group of some processes, of which this one is at `place`. Others do not call this."""
    group = dist.new_group(processes.tolist(), use_local_synchronization=True)
    return Ranks(place, len(processes), group)
