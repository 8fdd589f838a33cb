"""The blocks of a model of which a process computes some. For the others stands what it receives.

Blocks are numbered in the order in which a batch passes through them. What comes before a block, such as an
embedding, is computed by each stage that needs it; what comes after the last block, by the last stage.

A stage that begins with block b needs the output of block b - 1, and that of each stack that ended before,
since the blocks of a decoder read the output of the encoder. These outputs are its *message*.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from foveal.core.recompute import keeps_states
from foveal.core.runtime import seed_everything
from foveal.distributed.pipeline.cut import BlockCost
from foveal.distributed.world import Ranks

Aux = dict[str, Tensor]


class BlockOutput(NamedTuple):
    """The output of a block, and the sums of `aux` over the blocks of its stack up to there."""

    y: Tensor
    aux: Aux

    def tensors(self) -> list[Tensor]:
        return [self.y, *(self.aux[name] for name in sorted(self.aux))]


class StageEnds(BaseException):
    """The blocks of a stage are computed."""


@dataclass
class Pass:
    """A micro-batch on its way through a stage, or what a stage needs if it has no blocks."""

    own: range
    received: dict[int, BlockOutput] = field(default_factory=dict)
    seed: tuple[object, ...] = ()
    """What the noise of the stage depends on."""
    outputs: dict[int, BlockOutput] = field(default_factory=dict)
    states: dict[int, Any] = field(default_factory=dict)
    """The new states of the own blocks, if they go on."""


class StagedBlocks:
    """The blocks of a model, of which each process of `pipeline` computes those of its stages.

    Stage number s belongs to process s modulo their number.
    """

    def __init__(self, costs: Sequence[BlockCost], stages: list[range], pipeline: Ranks):
        self.stages, self.pipeline = stages, pipeline
        self.dtype = next(weight.dtype for cost in costs for weight in cost.block.parameters())
        """The precision of messages."""
        self.owners = [self.owner(stage) for stage, own in enumerate(stages) for _ in own]
        self.ends = {number for number, cost in enumerate(costs) if cost.ends_stack}
        self.unsent: Aux = {}
        self.passing: Pass | None = None
        self.scheduled = False
        """Whether a schedule computes micro-batches, in any order, and blocks again in the backward pass."""
        for number, cost in enumerate(costs):
            _StagedBlock(self, number, cost).attach()

    def owner(self, stage: int) -> int:
        return stage % self.pipeline.size

    def own_stages(self) -> list[int]:
        return [stage for stage in range(len(self.stages)) if self.owner(stage) == self.pipeline.rank]

    def message(self, first: int) -> list[int]:
        """Return the blocks whose outputs a stage needs that begins with block `first`."""
        return sorted({*(end for end in self.ends if end < first), first - 1} - {-1})

    def run(self, passing: Pass, compute: Callable[[], Tensor]) -> Tensor | None:
        """Compute a micro-batch on a stage. Return what `compute` returns in the last stage, else None."""
        self.passing = passing
        try:
            return compute()
        except StageEnds:
            return None
        finally:
            self.passing = None


class _StagedBlock:
    """A block that is computed if it belongs to the process or the pass."""

    def __init__(self, staged: StagedBlocks, number: int, cost: BlockCost):
        self.staged, self.number, self.block, self.width = staged, number, cost.block, cost.width
        self.compute = cost.block.forward
        self.is_own = staged.owners[number] == staged.pipeline.rank
        self.is_sent = number in staged.ends or any(number + 1 == own.stop for own in staged.stages)
        named = (getattr(module, "aux_names", ()) for module in cost.block.modules())
        self.aux_names = sorted({name for names in named for name in names})

    def attach(self) -> None:
        self.block.forward = self.forward
        if not self.is_own:
            self.block.init_state = _no_state  # type: ignore[assignment]

    def forward(self, x: Tensor, state: Any = None, *, lengths: Tensor | None = None) -> Any:
        if self.staged.passing is not None:
            return self._pass(self.staged.passing, x, state, lengths)
        if self.staged.scheduled:  # computed again, in the backward pass
            return self.compute(x, state, lengths=lengths)
        return self._compute_for_all(x, state, lengths)

    def _pass(self, passing: Pass, x: Tensor, state: Any, lengths: Tensor | None) -> Any:
        number, aux = self.number, dict[str, Tensor]()
        if number >= passing.own.stop:
            raise StageEnds
        if number in passing.own:
            y, state, aux = self.compute(x, state, lengths=lengths)
            if keeps_states():
                passing.states[number] = state
        elif number in passing.received:
            y, aux = passing.received[number]
            if number + 1 == passing.own.start:
                seed_everything(*passing.seed)
        else:
            y, aux = self._placeholder(x)
        is_sum = number in passing.received or not number or number - 1 in self.staged.ends
        passing.outputs[number] = BlockOutput(y, aux if is_sum else add(passing.outputs[number - 1].aux, aux))
        return y, state, aux

    def _compute_for_all(self, x: Tensor, state: Any, lengths: Tensor | None) -> Any:
        """Return the output of the block on all processes. Each computes its own blocks, and sends the output
        of the last of a stage or a stack, with the sums of `aux` since the one before."""
        if self.is_own:
            y, state, aux = self.compute(x, state, lengths=lengths)
        else:
            y, aux = self._placeholder(x)
        staged = self.staged
        staged.unsent = add(staged.unsent, aux)
        if not self.is_sent:
            return y, state, {}
        output, staged.unsent = BlockOutput(y.to(staged.dtype), staged.unsent), {}
        output = _send(output, staged.pipeline, staged.owners[self.number])
        return output.y, state, output.aux

    def _placeholder(self, x: Tensor) -> BlockOutput:
        """Return an output of the right shape."""
        aux = {name: x.new_zeros(len(x)) for name in self.aux_names}
        return BlockOutput(x.new_zeros(*x.shape[:-1], self.width), aux)


def add(first: Aux, second: Aux) -> Aux:
    """Return the sums of two `aux`."""
    return first | {name: first[name] + sums if name in first else sums for name, sums in second.items()}


def _send(output: BlockOutput, pipeline: Ranks, owner: int) -> BlockOutput:
    """Return the output of the process `owner` on all processes of the pipeline."""
    tensors = output.tensors()
    flat = torch.cat([tensor.detach().reshape(-1).to(output.y.dtype) for tensor in tensors])
    y, *sums = split_like(pipeline.broadcast(flat, owner), [tensor.shape for tensor in tensors])
    return BlockOutput(y, dict(zip(sorted(output.aux), sums, strict=True)))


def split_like(flat: Tensor, shapes: Sequence[torch.Size]) -> list[Tensor]:
    """Return the tensors of the given shapes that stand one after another in `flat`."""
    parts = flat.split([shape.numel() for shape in shapes])  # type: ignore[no-untyped-call]
    return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]


def _no_state(*arguments: Any) -> None:
    """Return the state of a block that another process computes."""
