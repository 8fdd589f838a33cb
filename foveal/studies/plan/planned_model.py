"""The model that a plan is for, and whether a layout and its batches fit."""

from collections.abc import Mapping
from functools import reduce
from typing import Any

from torch import nn

from foveal.core.errors import UserError
from foveal.core.shapes_only import shapes_only
from foveal.distributed.split import split
from foveal.distributed.tensor_group import TensorGroup
from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.blocks.moe import Experts
from foveal.layers.blocks.stack import Stack
from foveal.layers.mixers.multi_head_attention import MultiHeadAttention
from foveal.layers.ngram_lookup import NgramLookup
from foveal.studies.plan.layout import Layout
from foveal.tasks.base import Task


class NotCounted(UserError):
    """Models of this kind are not counted: a step of theirs can be measured alone."""


def sized_task(task: Task, sizes: Mapping[str, int]) -> Task:
    """Return a task bound to a processor: to one that knows only some `sizes`, or without them to its own.

    Raises: NotCounted: models of the task make no batches without data.
    Raises: UserError: they have no such size.
    """
    if task.row_size is None:
        raise NotCounted(
            f"foveal plan counts no models of task {task.name}: it makes no batches without data"
        )
    for size, number in sizes.items():
        if number < 1:
            raise UserError(f"--{size} {number}: expected a whole number from 1 on")
        if size not in (task.model_sizes or ()):
            raise UserError(f"--{size}: a model of task {task.name} has no such size; leave it out")
    if task.processor is not None and not sizes:
        return task
    return task.bind(task.sized_processor({**task.planned_sizes(), **sizes}))


def planned_model(task: Task) -> nn.Module:
    """Return the whole model of a task that is bound to a processor, of fake tensors.

    Raises: NotCounted: the model has other mixers than attention.
    """
    with shapes_only():
        model: nn.Module = task.new_model()
    blocks = [block for module in model.modules() if isinstance(module, Stack) for block in module.blocks]
    mixers = [block.mixer for block in blocks]
    others = {type(mixer).__name__ for mixer in mixers if not isinstance(mixer, MultiHeadAttention)}
    if getattr(model, "lookup", None) is not None:
        others.add(NgramLookup.__name__)
    if others:
        raise NotCounted(
            f"foveal plan counts stacks of attention alone: this model of task {task.name} has "
            + " and ".join(sorted(others))
        )
    return model


def check_layout(task: Task, model: nn.Module, layout: Layout) -> None:
    """Check that a layout fits a model, which is split.

    Raises: UserError: the layout does not fit.
    """
    options = ("tp", "pp", "ep", "fsdp")
    if not isinstance(model, DecoderLM) and (
        option := next((each for each in options if getattr(layout, each) > 1 - (each == "fsdp")), None)
    ):
        raise UserError(
            f"--{option}: a plan counts it for language models alone, and this is {task.name}: leave it out; "
            "--ranks and --micro-batches are counted"
        )
    layers, stages = task.config.model.layers, layout.pp * layout.virtual_stages
    if stages > layers:
        raise UserError(
            f"--pp {layout.pp}: {layers} layers are fewer than the {stages} parts of the pipeline"
        )
    experts = [module for module in model.modules() if isinstance(module, Experts)]
    if layout.ep > 1 and not experts:
        raise UserError(f"--ep {layout.ep}: the model has no experts (model.feedforward=moe)")
    if any(module.count % layout.ep for module in experts):
        raise UserError(f"--ep {layout.ep}: does not divide model.experts.count={experts[0].count}")
    if layout.tp > 1:
        with shapes_only():
            split(model, TensorGroup(0, layout.tp))


def rows_of_micro_batch(task: Task, layout: Layout) -> int:
    """Return the rows of a micro-batch of one process.

    Raises: UserError: the processes and their micro-batches do not divide the batch.
    """
    config: Any = task.config
    size: int = reduce(getattr, task.batch_setting.split("."), config)
    row_size = task.row_size or 1
    rows, parts = max(1, size // row_size), layout.dp * layout.micro_batches
    if rows % parts:
        whole = f"rows of {row_size:,} tokens" if row_size > 1 else task.row_unit
        more = -(-rows // parts) * parts * row_size
        raise UserError(
            f"{task.batch_setting}={size}: {rows} {whole} are not {layout.dp} processes x "
            f"{layout.micro_batches} micro-batches; set {task.batch_setting}={more}"
        )
    return rows // parts
