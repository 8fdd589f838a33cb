"""Processes that split the layers of a model among them (tensor parallelism, Shoeybi et al. 2019).

`parts` processes that follow each other are a rank: they compute the same rows, each with its part of the
layers. The same parts of different ranks add up their gradients.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist

from foveal.core.errors import UserError
from foveal.core.shapes_only import shapes_only
from foveal.distributed.partial import Cut, PartialWeights
from foveal.distributed.placement import Placement
from foveal.distributed.split_group import SplitGroup
from foveal.distributed.tensor_group import SplitModule, TensorGroup
from foveal.distributed.world import Ranks


class SplitRanks(Ranks):
    """Processes of which each `parts` split a model."""

    shares_weights = True

    def __init__(self, process: int, processes: int, parts: int):
        rank, part = divmod(process, parts)
        ranks = processes // parts
        # All processes make all groups, in the same order.
        splitting = [dist.new_group([each * parts + one for one in range(parts)]) for each in range(ranks)]
        adding = [dist.new_group([each * parts + one for each in range(ranks)]) for one in range(parts)]
        super().__init__(rank, ranks, adding[part])
        self.processes, self.parts, self._process = processes, parts, process
        self._everyone = Ranks(process, processes)
        self._sharing = Ranks(part, parts, splitting[rank])

    @property
    def process(self) -> int:
        return self._process

    def by_rank(self, messages: list[Any]) -> list[Any]:
        return messages[:: self.parts]

    def exchange(self, message: Any) -> list[Any]:
        return self._everyone.exchange(message)

    def check(self, new_model: Callable[[], nn.Module]) -> None:
        with shapes_only():
            split(new_model(), TensorGroup(self._sharing.rank, self.parts))

    def place(self, model: nn.Module) -> Placement:
        return SplitWeights(model, self._sharing, writes=self.rank == 0)


class SplitWeights(PartialWeights):
    """The weights of a model whose layers the processes of a rank split."""

    def __init__(self, model: nn.Module, sharing: Ranks, writes: bool):
        assert sharing.group is not None
        group = SplitGroup(sharing.group)
        of_weight = split(model, group)
        parts, cuts = dict[str, Tensor](), dict[str, Cut]()
        for name, parameter in model.named_parameters():
            if (cut := of_weight.get(parameter)) is not None:
                rows, cuts[name] = group.rows(cut.length), cut
                own = parameter.data.narrow(cut.axis, rows.start, rows.stop - rows.start)
                parameter.data = own.clone(memory_format=torch.contiguous_format)
            parts[name] = parameter.detach()
        super().__init__(sharing, parts, cuts, writes)


def split(model: nn.Module, group: TensorGroup) -> dict[nn.Parameter, Cut]:
    """Split the modules of a model among the ranks of a group. Return how each weight is to be cut.

    Raises: UserError: a module can't be split by so many, or none can.
    """
    cuts = dict[nn.Parameter, Cut]()
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for path, module in split_modules(model).items():
        try:
            axes = module.split_among(group)
        except ValueError as error:
            raise UserError(f"--tp {group.size}: {path or 'the model'}: {error}") from None
        for name, axis in axes.items():
            parameter = parameters[f"{path}.{name}" if path else name]
            cuts[parameter] = Cut(axis, parameter.shape[axis])
    if not cuts:
        raise UserError(
            f"--tp {group.size}: no layer of this model can be split; attention, MLP, SwiGLU, embeddings and "
            "the projection to a vocabulary can"
        )
    return cuts


def split_modules(model: nn.Module) -> dict[str, SplitModule]:
    """Return the modules that can be split, by path: those whose weights no other module reads whole."""
    modules = {path: module for path, module in model.named_modules() if isinstance(module, SplitModule)}
    below = {id(one) for module in modules.values() for one in module.modules()}  # type: ignore[attr-defined]
    read_whole = {
        id(weight)
        for module in model.modules()
        if id(module) not in below
        for weight in module.parameters(recurse=False)
    }
    return {
        path: module
        for path, module in modules.items()
        if not any(id(weight) in read_whole for weight in module.parameters(recurse=False))  # type: ignore[attr-defined]
    }
