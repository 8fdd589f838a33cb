"""How the blocks of a model are cut into stages of nearly equal cost."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from foveal.core.errors import UserError


@runtime_checkable
class BlockStack(Protocol):
    """A sequence of blocks that stages can share. Its state has those of the blocks as `blocks`.

    A block maps x (B, T, D) to y (B, T, E): `y, state, aux = block(x, state, lengths=lengths)`.
    """

    blocks: nn.ModuleList
    shapes: dict[str, Any]

    def init_state(self, batch: int, capacity: int | None = None, memory: Any = None) -> Any: ...


@dataclass(frozen=True)
class BlockCost:
    """A block that a batch passes through, and the floating-point operations of a row up to its end, from the
    end of the block before."""

    block: nn.Module
    ends_stack: bool
    width: int
    """The width of its outputs."""
    operations: int


def block_stacks(model: nn.Module) -> list[nn.ModuleList]:
    """Return the lists of blocks of a model that stages can share."""
    return [module.blocks for module in model.modules() if isinstance(module, BlockStack)]


def measure_blocks(model: nn.Module, compute: Callable[..., Any]) -> list[BlockCost]:
    """Return the blocks in the order in which `compute` passes through them. The last cost includes what
    comes after the last block, such as the projection to a vocabulary.

    Raises: UserError: a block is computed several times for a batch.
    """
    last = {id(blocks[-1]) for blocks in block_stacks(model)}
    passed: list[tuple[nn.Module, int, int]] = []

    def end(module: nn.Module, inputs: Any, outputs: Any, counter: FlopCounterMode) -> None:
        passed.append((module, outputs[0].shape[-1], counter.get_total_flops()))

    with FlopCounterMode(display=False) as counter:
        hooks = [
            block.register_forward_hook(partial(end, counter=counter))
            for blocks in block_stacks(model)
            for block in blocks
        ]
        try:
            compute(by_reference=True)
        finally:
            for hook in hooks:
                hook.remove()
        total = counter.get_total_flops()
    if len({id(module) for module, _, _ in passed}) < len(passed):
        raise UserError("--pp: a batch passes through a block of this model several times; leave out --pp")
    counts = [0, *(count for _, _, count in passed[:-1]), total]
    return [
        BlockCost(module, id(module) in last, width, after - before)
        for (module, width, _), (before, after) in zip(passed, pairwise(counts), strict=True)
    ]


def cut_into_stages(costs: Sequence[int], stages: int) -> list[range]:
    """Return the blocks of each stage, such that the most expensive stage is as cheap as possible. Each stage
    has a block; the first of equally good cuts counts.

    Raises: ValueError: there are fewer blocks than stages.
    """
    if len(costs) < stages:
        raise ValueError(f"{len(costs)} blocks can't be cut into {stages} stages")
    best = {0: (0, [0])}  # the largest cost of a stage, and the bounds, by the number of blocks
    for stage in range(1, stages + 1):
        best = {
            stop: min(
                (max(best[start][0], sum(costs[start:stop])), [*best[start][1], stop])
                for start in range(stage - 1, stop)
                if start in best
            )
            for stop in range(stage, len(costs) - stages + stage + 1)
        }
    return [range(*bounds) for bounds in pairwise(best[len(costs)][1])]


def weights_of_one_block(model: nn.Module, blocks: Sequence[nn.Module]) -> Iterator[tuple[str, int]]:
    """Yield the name of each parameter and buffer that belongs to a single block, and the number of that
    block. All others belong to every stage."""
    members: dict[int, set[int]] = {}
    inside = {id(module): number for number, block in enumerate(blocks) for module in block.modules()}
    for module in model.modules():
        for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
            members.setdefault(id(tensor), set()).add(inside.get(id(module), -1))
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        (number, *others) = members[id(tensor)]
        if number >= 0 and not others and tensor.dim():
            yield name, number
