"""The weights of the blocks that a process computes; the others have no memory here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.state import State
from foveal.core.terminal_text import counted
from foveal.distributed.partial import Cut, PartialWeights, Parts
from foveal.distributed.pipeline.blocks import StagedBlocks
from foveal.distributed.pipeline.cut import BlockCost, weights_of_one_block
from foveal.distributed.pipeline.schedule import Schedule
from foveal.distributed.placement import MicroBatch, Seed
from foveal.distributed.tree import Gradients, flatten, unflatten
from foveal.distributed.world import Ranks


@dataclass(frozen=True)
class StageCut(Cut):
    """A tensor of a block, which one process holds. The others hold none of its rows."""

    sharing: Ranks
    owner: int
    shape: torch.Size

    def whole_shape(self, part: torch.Size) -> torch.Size:
        return self.shape

    def whole(self, part: Tensor, axes: int) -> Tensor:
        whole = part.new_empty(*part.shape[:axes], *self.shape)
        if self.owner == self.sharing.rank:
            whole.copy_(part)
        return self.sharing.broadcast(whole, self.owner)

    def own(self, whole: Tensor, axes: int) -> Tensor:
        rows = whole.shape[axes] if self.owner == self.sharing.rank else 0
        return whole.narrow(axes, 0, rows).clone()


class StageWeights(PartialWeights):
    """The weights of a pipeline: each process of `pipeline` holds those of the blocks of its stages, and
    those that belong to no block, such as an embedding.

    `costs` are those of all blocks, of which each stage has a range.
    """

    def __init__(
        self,
        model: nn.Module,
        pipeline: Ranks,
        costs: Sequence[BlockCost],
        stages: list[range],
        parts: Parts,
        writes: bool,
    ):
        self._pipeline = pipeline
        self._staged = StagedBlocks(costs, stages, pipeline)
        numbers = dict(weights_of_one_block(model, [cost.block for cost in costs]))
        of_blocks = set[Tensor]()
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if name in numbers:
                stage = StageCut(pipeline, self._staged.owners[numbers[name]], tensor.shape)
                if stage.owner != pipeline.rank:
                    tensor.data = tensor.detach().new_zeros(()).expand(tensor.shape)
                    parts.cut(name, tensor.new_empty(0, *tensor.shape[1:]), stage)
                else:
                    parts.cut(name, parts.tensors.get(name, tensor), stage)
                of_blocks.add(parts.tensors[name])
        self._of_blocks = of_blocks
        parts.groups.append(pipeline)
        super().__init__(parts, writes)
        self._schedule: Schedule | None = None

    def run(self, micro_batches: Sequence[MicroBatch], seeds: Sequence[Seed]) -> None:
        if self._schedule is None:
            self._schedule = Schedule(self._staged, len(micro_batches))
        self._schedule.run(micro_batches, seeds)

    def sum_over_stages(self, gradients: Gradients, weights: Sequence[Tensor]) -> Gradients:
        """Return the sums of the gradients of the weights that belong to no block. `weights` are the own
        parts of all trained weights."""
        present = torch.tensor([gradient is not None for gradient in gradients])
        somewhere = self._pipeline.gather(present).any(0).tolist()
        common = [index for index, weight in enumerate(weights) if weight not in self._of_blocks]
        of_common = [gradients[index] for index in common]
        shared = [weights[index] for index in common]
        summed = list(gradients)
        if common:
            flat = self._pipeline.all_reduce(flatten(of_common, shared))
            for index, total in zip(common, unflatten(flat, shared), strict=True):
                summed[index] = total
        return [
            torch.zeros_like(weight) if gradient is None and exists else gradient
            for gradient, exists, weight in zip(summed, somewhere, weights, strict=True)
        ]

    def carries(self, carries: Sequence[State]) -> list[State]:
        """Return the carries of the micro-batches of a step, which the last stage knows, with the states of
        the own blocks."""
        last = self._staged.owner(len(self._staged.stages) - 1)
        skeletons = [with_block_states(carry, lambda number, state: None) for carry in carries]
        of_last: list[State] = self._pipeline.exchange(skeletons)[last]
        assert self._schedule is not None
        own = [self._schedule.states(index) for index in range(len(carries))]
        return [
            with_block_states(skeleton, partial(_entry, states))
            for skeleton, states in zip(of_last, own, strict=True)
        ]

    def own_states(self, carry: State) -> State:
        """Return a carry without the states of blocks that other processes compute."""
        return with_block_states(
            carry,
            lambda number, state: state if self._staged.owners[number] == self._pipeline.rank else None,
        )

    def join_states(self, carries: Sequence[State]) -> State:
        """Return the carry with the states of all blocks, from those of the processes of the pipeline."""
        states: list[dict[int, State]] = []
        for carry in carries:
            states.append({})
            with_block_states(carry, states[-1].__setitem__)
        return with_block_states(carries[0], lambda number, _: states[self._staged.owners[number]][number])


def check_stages(blocks: int, stages: int, processes: int) -> None:
    """Check that each stage has a block.

    Raises: UserError: there are fewer blocks than stages.
    """
    if not blocks:
        raise UserError(f"--pp {processes}: this model has no stack of blocks that stages could share")
    if blocks < stages:
        raise UserError(
            f"--pp {processes}: {counted(blocks, 'block')} can't be cut into {stages} stages, of which each "
            "has at least one: lower --pp or --virtual-stages, or raise model.layers"
        )


def with_block_states(carry: State, new: Callable[[int, State], State]) -> State:
    """Return a carry with the state of block i of its stack replaced by `new(i, state)`."""
    if not isinstance(carry, dict):
        return carry
    return {
        name: tuple(new(number, state) for number, state in enumerate(part))
        if name == "blocks"
        else with_block_states(part, new)
        for name, part in carry.items()
    }


def _entry(states: dict[int, State], number: int, before: State) -> State:
    """Return the new state of a block; None of a block that another process computes."""
    return states.get(number)
