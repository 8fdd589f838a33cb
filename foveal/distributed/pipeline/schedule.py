"""The order of forward and backward passes in a pipeline: 1F1B, or interleaved 1F1B where a process has
several stages, by `torch.distributed.pipelining`.

torch's stages need equal shapes in all micro-batches. These stages do not: what a stage receives has the
shapes of the placeholders that stand for it before.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleInterleaved1F1B

from foveal.core.state import State, detach_state
from foveal.distributed.pipeline.blocks import BlockOutput, Pass, StagedBlocks, split_like
from foveal.distributed.placement import MicroBatch, Seed
from foveal.distributed.world import lost_rank_ends

ONE_NUMBER = torch.zeros(1)
"""Stands for the inputs and outputs of torch's stages, whose shapes differ by micro-batch."""


class MicroBatchStage(PipelineStage):
    """A stage of the pipeline, with the blocks `own`.

    A message is sent as one tensor. `states` has the new states of the own blocks by micro-batch.
    """

    def __init__(self, staged: StagedBlocks, index: int):
        super().__init__(
            nn.Identity(),
            index,
            len(staged.stages),
            ONE_NUMBER.device,
            input_args=ONE_NUMBER,
            output_args=ONE_NUMBER,
            group=staged.pipeline.group,
        )
        self.staged, self.own = staged, staged.stages[index]
        self.micro_batches: Sequence[MicroBatch] = ()
        self.seeds: Sequence[Seed] = ()
        self.states: dict[int, dict[int, State]] = {}
        self._inputs: dict[int, tuple[Tensor, list[BlockOutput]]] = {}
        self._outputs: dict[int, list[Tensor]] = {}
        self._gradients: dict[int, Tensor] = {}
        self._losses: dict[int, Tensor] = {}

    def clear_runtime_states(self) -> None:
        super().clear_runtime_states()
        for kept in (self.states, self._inputs, self._outputs, self._gradients, self._losses):
            kept.clear()

    def get_fwd_recv_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        if self.is_first:
            return []
        start = self.own.start
        skeleton = Pass(range(start, start))
        with torch.no_grad():
            self.staged.run(skeleton, self.micro_batches[fwd_chunk_id])
        outputs = [skeleton.outputs[number] for number in self.staged.message(start)]
        length = sum(tensor.numel() for output in outputs for tensor in output.tensors())
        buffer = outputs[0].y.new_empty(length, dtype=self.staged.dtype)
        self._inputs[fwd_chunk_id] = buffer, outputs
        return [self._operation(dist.irecv, buffer, self.stage_index - 1)]

    def forward_one_chunk(self, fwd_chunk_id: int, *arguments: Any, **options: Any) -> Tensor | None:
        passing = Pass(self.own, self._received(fwd_chunk_id), (*self.seeds[fwd_chunk_id], self.stage_index))
        loss = self.staged.run(passing, self.micro_batches[fwd_chunk_id])
        self.states[fwd_chunk_id] = detach_state(passing.states)
        if self.is_last:
            assert loss is not None
            self._losses[fwd_chunk_id] = loss
            return loss.detach()
        sent = [passing.outputs[number] for number in self.staged.message(self.own.stop)]
        self._outputs[fwd_chunk_id] = [tensor for output in sent for tensor in output.tensors()]
        return None

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> list[dist.P2POp]:
        if self.is_last:
            return []
        tensors = self._outputs[fwd_chunk_id]
        return [self._operation(dist.isend, self._flatten(tensors, tensors), self.stage_index + 1)]

    def get_bwd_recv_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        if self.is_last:
            return []
        tensors = self._outputs[bwd_chunk_id]
        buffer = self._gradients[bwd_chunk_id] = tensors[0].new_empty(
            sum(each.numel() for each in tensors), dtype=self.staged.dtype
        )
        return [self._operation(dist.irecv, buffer, self.stage_index + 1)]

    def backward_one_chunk(self, bwd_chunk_id: int, *arguments: Any, **options: Any) -> None:
        if self.is_last:
            self._losses.pop(bwd_chunk_id).backward()  # type: ignore[no-untyped-call]
            return
        outputs, flat = self._outputs.pop(bwd_chunk_id), self._gradients.pop(bwd_chunk_id)
        gradients = split_like(flat, [output.shape for output in outputs])
        pairs = [
            (output, gradient.to(output.dtype))
            for output, gradient in zip(outputs, gradients, strict=True)
            if output.requires_grad
        ]
        if pairs:
            ends, of_ends = zip(*pairs, strict=True)
            torch.autograd.backward(ends, of_ends)

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> list[dist.P2POp]:
        if self.is_first:
            return []
        _, outputs = self._inputs.pop(bwd_chunk_id)
        received = [tensor for output in outputs for tensor in output.tensors()]
        gradients = [tensor.grad for tensor in received]
        return [self._operation(dist.isend, self._flatten(gradients, received), self.stage_index - 1)]

    def _received(self, micro_batch: int) -> dict[int, BlockOutput]:
        """Return the outputs that a micro-batch received, as the beginnings of its gradients."""
        if self.is_first:
            return {}
        buffer, shapes = self._inputs[micro_batch]
        parts = iter(split_like(buffer, [tensor.shape for output in shapes for tensor in output.tensors()]))
        outputs = [
            BlockOutput(_leaf(next(parts)), {name: _leaf(next(parts)) for name in sorted(output.aux)})
            for output in shapes
        ]
        self._inputs[micro_batch] = buffer, outputs
        return dict(zip(self.staged.message(self.own.start), outputs, strict=True))

    def _flatten(self, tensors: Sequence[Tensor | None], like: Sequence[Tensor]) -> Tensor:
        """Return tensors one after another, in the precision of the weights; zeros for None."""
        return torch.cat(
            [
                (torch.zeros_like(of) if each is None else each.detach()).reshape(-1).to(self.staged.dtype)
                for each, of in zip(tensors, like, strict=True)
            ]
        )

    def _operation(self, operation: Callable[..., Any], tensor: Tensor, stage: int) -> dist.P2POp:
        assert self.group is not None
        peer = dist.get_global_rank(self.group, self.staged.owner(stage))
        return dist.P2POp(operation, tensor, peer, self.group)


class Schedule:
    """Computes the micro-batches of a step on the stages of a process."""

    def __init__(self, staged: StagedBlocks, micro_batches: int):
        self.staged = staged
        self.stages = [MicroBatchStage(staged, index) for index in staged.own_stages()]
        if len(self.stages) == 1:
            self._schedule: Any = Schedule1F1B(self.stages[0], micro_batches, _own_loss, scale_grads=False)
        else:
            self._schedule = ScheduleInterleaved1F1B(
                list(self.stages), micro_batches, _own_loss, scale_grads=False
            )

    def run(self, micro_batches: Sequence[MicroBatch], seeds: Sequence[Seed]) -> None:
        """Compute the gradients of the losses of all micro-batches."""
        for stage in self.stages:
            stage.micro_batches, stage.seeds = micro_batches, seeds
        self.staged.scheduled = True
        try:
            with lost_rank_ends():
                self._schedule.step(target=torch.zeros(len(micro_batches)), return_outputs=False)
        finally:
            self.staged.scheduled = False

    def states(self, micro_batch: int) -> dict[int, Any]:
        """Return the new states of the blocks of this process."""
        return {number: state for stage in self.stages for number, state in stage.states[micro_batch].items()}


def _own_loss(output: Tensor, target: Tensor) -> Tensor:
    """Return the loss, which the last stage has computed."""
    return output


def _leaf(part: Tensor) -> Tensor:
    return part.detach().clone().requires_grad_()
