"""A process of a training, which takes the step of a training on fake tensors, and is counted."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from foveal.core.runtime import Precision, autocast
from foveal.core.shapes_only import without_initial_values
from foveal.distributed.bfloat16_weights import bfloat16_weights
from foveal.distributed.sharded import sharded_blocks
from foveal.layers.blocks.moe import Experts
from foveal.layers.blocks.stack import Stack
from foveal.studies.plan.fake_processes import process_of
from foveal.studies.plan.fake_tensors import with_dropout_of_gpus, without_numbers
from foveal.studies.plan.layout import Layout
from foveal.studies.plan.recorder import MemoryKind, Message, Operation, StepRecorder
from foveal.studies.plan.watched_step import WatchedObjective, WatchedOptimizer
from foveal.tasks.base import Task
from foveal.training.averaging import make_average
from foveal.training.slots import Slots
from foveal.training.step import train_step

RUN_MICRO_BATCHES = 2
"""Micro-batches that are computed at most; each of the others takes as much as these."""
Counted = TypeVar("Counted", Operation, Message)


@dataclass(frozen=True)
class Parameters:
    """Parameters of a model of fake tensors, as a process holds them."""

    own: int
    experts: int
    """Those of experts."""
    blocks: tuple[int, ...]
    """Those of each block."""
    shared: int
    """The part of all of them that one of the processes holds that share the weights."""
    gathered: int
    """Bytes of all of them, as the processes gather them that share the weights."""
    gathered_blocks: tuple[int, ...]
    """Those of each block."""


@dataclass(frozen=True)
class RankStep:
    """What a step of a process takes."""

    parameters: Parameters
    tokens: int
    """Tokens of a micro-batch, or images."""
    positions: int
    """Positions that the first stack of blocks reads; 0 without a stack."""
    micro_batches: int
    passed_on: int
    """Bytes that a block passes on to the next for a micro-batch."""
    kept: int
    """Bytes of the blocks that wait for the backward pass of a micro-batch."""
    routed: int
    """Bytes of the vectors that are sent to experts in a micro-batch."""
    recomputed_flops: int
    """Floating-point operations that are a second computation of blocks."""
    peak: Counter[MemoryKind]
    """Memory at its peak."""
    operations: Counter[Operation]
    messages: Counter[Message]

    @property
    def flops(self) -> int:
        """Floating-point operations, without those that are done a second time."""
        return sum(each.flops * count for each, count in self.operations.items()) - self.recomputed_flops

    @property
    def forward_multiplications(self) -> float:
        """Return the multiplications of a forward pass, each with its addition, for a token or an image."""
        forward = sum(
            each.flops * count for each, count in self.operations.items() if each.phase == "forward"
        )
        return forward / (2 * self.tokens * self.micro_batches)

    @property
    def flops_per_token(self) -> float:
        """Return those of the micro-batches, without the update, for a token or an image."""
        update = sum(each.flops * count for each, count in self.operations.items() if each.phase == "update")
        return (self.flops - update) / (self.tokens * self.micro_batches)


def count_step(
    task: Task,
    layout: Layout,
    rows: int,
    dtype: torch.dtype = torch.float32,
    copies_gathers: bool = False,
) -> RankStep:
    """Return what a step with `rows` of the longest rows in a micro-batch takes. The task is bound to a
    processor. Its model is made and cut, and its step taken, by the code that trains. Weights and gradients
    are of type `dtype`. `copies_gathers` is that of the hardware.

    Raises: UserError: the layout does not fit the model.
    """
    config, tokens = task.config, task.longest_batch(rows).tokens
    micro_batches = layout.micro_batches * config.training.grad_accumulation
    count = min(RUN_MICRO_BATCHES, micro_batches)
    with process_of(layout) as world, without_numbers(task.scored_fraction):
        model, stacks = _model_of_process(task, layout, dtype)
        placement = world.place(model, lambda: None)
        task = task.bind(task.processor, model)
        groups = {tuple(layout.members(name)): name for name in ("dp", "tp")}
        recorder = StepRecorder(groups, {"gradients"} if layout.fsdp else set(), copies_gathers)
        objective = WatchedObjective(placement.computing(task.objective()), stacks, recorder)
        batch = task.longest_batch(rows * layout.dp)
        precision: Precision = "float32" if config.training.precision == "float32" else "bfloat16"
        converted = set[nn.Parameter]()
        if layout.fsdp:
            row = partial(_compute, task.objective(), task.longest_batch(1), precision)
            converted = bfloat16_weights(model, row)
        with recorder:
            optimizer = WatchedOptimizer(model, config.optimizer, placement, recorder)
            for weight in converted:
                weight.data = weight.data.bfloat16()
                recorder.hold(weight, "weights")
            average = make_average(model, config.training, placement)
            for tensor in average.tensors.values() if average else ():
                recorder.hold(tensor, "averages")
            recorder.start()
            train_step(
                model,
                objective,
                optimizer,
                [batch] * count,
                [None] * count,
                lr=config.optimizer.lr,
                seed=(0,),
                precision=precision,
                slots=Slots(world.size, world),
                activation_checkpointing=config.training.activation_checkpointing,
            )
        times = micro_batches / count
        return RankStep(
            _count_parameters(model, layout.dp),
            tokens,
            objective.positions,
            micro_batches,
            objective.passed_on,
            objective.kept,
            sum(module.active for module in _experts(model)) * objective.passed_on * layout.tp // 2,
            round(objective.recomputed_flops * times),
            recorder.peak,
            _of_all_micro_batches(recorder.operations, times),
            _of_all_micro_batches(recorder.messages, times),
        )


def _model_of_process(task: Task, layout: Layout, dtype: torch.dtype) -> tuple[nn.Module, list[Stack]]:
    """Return a model of fake tensors with the experts of a process, before it is cut, and its stacks."""
    with without_initial_values():
        model = task.new_model()
    for weight in model.parameters():
        weight.data = weight.data.to(dtype)
    stacks = [module for module in model.modules() if isinstance(module, Stack)]
    for stack in stacks:
        for block in stack.blocks:
            with_dropout_of_gpus(block)
    _keep_own_experts(model, layout.ep)
    return model, stacks


def _compute(objective: Any, batch: Any, precision: Precision) -> None:
    with autocast(torch.device("cpu"), precision):
        objective(batch, None)


def _of_all_micro_batches(counted: Counter[Counted], times: float) -> Counter[Counted]:
    """Return the counts of a step, from those of the micro-batches that were computed."""
    return Counter(
        {each: count if each.phase == "update" else round(count * times) for each, count in counted.items()}
    )


def _experts(model: nn.Module) -> list[Experts]:
    return [module for module in model.modules() if isinstance(module, Experts)]


def _keep_own_experts(model: nn.Module, ep: int) -> None:
    """Keep the weights of the experts of one of `ep` processes; they compute as many vectors as before."""
    for module in _experts(model) if ep > 1 else ():
        for weight in (module.weight_expand, module.weight_contract):
            weight.data = weight.data[: module.count // ep].clone()


def _count_parameters(model: nn.Module, processes: int) -> Parameters:
    weights = list(model.parameters())
    experts = {
        weight for module in _experts(model) for weight in (module.weight_expand, module.weight_contract)
    }
    return Parameters(
        _numbers(weights),
        _numbers(experts),
        tuple(_numbers(block.parameters()) for block in sharded_blocks(model)),
        sum(-(-len(weight) // processes) * weight[0].numel() if weight.dim() else 1 for weight in weights),
        _bytes(weights),
        tuple(_bytes(block.parameters()) for block in sharded_blocks(model)),
    )


def _numbers(weights: Iterable[Tensor]) -> int:
    return sum(weight.numel() for weight in weights)


def _bytes(weights: Iterable[Tensor]) -> int:
    return sum(weight.nbytes for weight in weights)
