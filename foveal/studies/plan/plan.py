"""The plan of a training: the memory, messages and time of a process, before there is one."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from foveal.config import Config
from foveal.core.errors import UserError
from foveal.core.shapes_only import shapes_only
from foveal.distributed.split import split
from foveal.distributed.tensor_group import TensorGroup
from foveal.heads.decoder_lm import DecoderLM
from foveal.layers.blocks.moe import Experts
from foveal.layers.mixers.multi_head_attention import MultiHeadAttention
from foveal.studies.plan.attention_matrix import AttentionMatrix, attention_matrix
from foveal.studies.plan.hardware import ASSUMED, Hardware, Utilization
from foveal.studies.plan.layout import Layout
from foveal.studies.plan.memory import peak_memory
from foveal.studies.plan.messages import all_messages
from foveal.studies.plan.rank_step import RankStep, count_step
from foveal.studies.plan.recorder import MemoryKind, Message
from foveal.studies.plan.step_time import StepTime, bubble, step_time
from foveal.tasks.registry import task_of


@dataclass(frozen=True)
class Plan:
    """What a training takes."""

    layout: Layout
    hardware: Hardware
    utilization: Utilization
    parameters: int
    """Parameters of the whole model."""
    step: RankStep
    memory: Counter[MemoryKind]
    messages: Counter[Message]
    time: StepTime
    batch_tokens: int
    """Tokens of a step."""
    attention: AttentionMatrix
    flops_per_token: float
    """Floating-point operations of the whole model for a token that is trained on."""

    @property
    def memory_total(self) -> int:
        return sum(self.memory.values())

    @property
    def fits(self) -> bool:
        return self.memory_total <= self.hardware.memory

    @property
    def bubble(self) -> float:
        """The time that a stage waits, over the time that it computes."""
        return bubble(self.layout, self.step.micro_batches)

    @property
    def tokens_per_second(self) -> float:
        return self.batch_tokens / self.time.total

    @property
    def flops(self) -> int:
        """Floating-point operations of a process in a step, without those that are done a second time."""
        return self.step.flops

    @property
    def model_flop_utilization(self) -> float:
        """The part of the peak that these take (Chowdhery et al. 2022, appendix B)."""
        return self.flops / (self.time.total * self.hardware.half_flops)


def make_plan(
    config: Config,
    vocabulary: int,
    layout: Layout,
    hardware: Hardware,
    utilization: Utilization = ASSUMED,
) -> Plan:
    """Return the plan of a training of a language model.

    Raises: UserError: the model is not planned, or the layout does not fit the model or its batch.
    """
    parameters = _check_model(config, vocabulary, layout)
    rows = _rows_of_micro_batch(config, layout)
    stage = config.model.model_copy(update={"layers": -(-config.model.layers // layout.pp)})
    step = count_step(
        config.model_copy(update={"model": stage}),
        layout,
        vocabulary,
        rows,
        copies_gathers=hardware.copies_gathers,
    )
    messages = all_messages(step, layout, config.training.activation_checkpointing)
    time = step_time(step.operations, messages, layout, step.micro_batches, hardware, utilization)
    return Plan(
        layout,
        hardware,
        utilization,
        parameters,
        step,
        peak_memory(step, layout),
        messages,
        time,
        step.tokens * step.micro_batches * layout.dp,
        attention_matrix(config, rows),
        _flops_per_token(config, vocabulary),
    )


def _flops_per_token(config: Config, vocabulary: int) -> float:
    """Return the operations of the whole model for a token, from models of one layer and of two: the others
    take as many as the second."""
    training = config.training.model_copy(update={"activation_checkpointing": False})
    one, two = (
        count_step(
            config.model_copy(
                update={"model": config.model.model_copy(update={"layers": layers}), "training": training}
            ),
            Layout(),
            vocabulary,
            1,
        ).flops
        for layers in (1, 2)
    )
    return (one + (config.model.layers - 1) * (two - one)) / config.data.context_length


def _check_model(config: Config, vocabulary: int, layout: Layout) -> int:
    """Return the parameters of the whole model.

    Raises: UserError: the model is not planned, or the layout does not fit it.
    """
    task: Any = task_of(config)
    if task.model_sizes != ("vocabulary",):
        raise UserError(f"foveal plan counts language models: this is a model of task {task.name}")
    with shapes_only():
        model = task.bind(task.sized_processor({"vocabulary": vocabulary})).new_model()
    mixers = [block.mixer for block in model.stack.blocks] if isinstance(model, DecoderLM) else []
    if (
        not mixers
        or model.lookup is not None
        or not all(isinstance(each, MultiHeadAttention) for each in mixers)
    ):
        raise UserError(
            f"foveal plan counts language models of attention alone: this is {task.name} with "
            f"model.mixers={config.model.mixers}"
        )
    parameters = sum(weight.numel() for weight in model.parameters())
    layers, stages = config.model.layers, layout.pp * layout.virtual_stages
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
    return parameters


def _rows_of_micro_batch(config: Config, layout: Layout) -> int:
    """Return the rows of a micro-batch of one process.

    Raises: UserError: the processes and their micro-batches do not divide the batch.
    """
    data = config.data
    rows, parts = data.batch_tokens // data.context_length, layout.dp * layout.micro_batches
    if rows % parts:
        raise UserError(
            f"data.batch_tokens={data.batch_tokens}: {rows} rows of {data.context_length} tokens are not "
            f"{layout.dp} processes x {layout.micro_batches} micro-batches; set "
            f"data.batch_tokens={-(-rows // parts) * parts * data.context_length}"
        )
    return rows // parts
