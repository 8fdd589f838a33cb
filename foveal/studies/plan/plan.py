"""The plan of a training: the memory, messages and time of a process, before there is one."""

from collections import Counter
from dataclasses import dataclass

from foveal.config import Config, TrainingConfig
from foveal.heads.decoder_lm import DecoderLM
from foveal.studies.plan.attention_matrix import AttentionMatrix, attention_heads, attention_matrix
from foveal.studies.plan.hardware import Hardware, Utilization
from foveal.studies.plan.inference import InferenceMemory, inference_memory
from foveal.studies.plan.layout import Layout
from foveal.studies.plan.memory import peak_memory
from foveal.studies.plan.messages import all_messages
from foveal.studies.plan.planned_model import check_layout, planned_model, rows_of_micro_batch
from foveal.studies.plan.rank_step import RankStep, count_step
from foveal.studies.plan.recorder import MemoryKind, Message
from foveal.studies.plan.step_time import StepTime, bubble, step_time
from foveal.studies.plan.training_length import TrainingLength, length_of_budget
from foveal.tasks.base import Task


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
    unit: str
    """What the tokens of a step are: tokens, target tokens or images."""
    batch_tokens: int
    """Tokens of a step."""
    attention: AttentionMatrix | None
    """The weights of a layer of the first stack; None without attention."""
    flops_per_token: float
    """Floating-point operations of the whole model for a token that is trained on."""
    inference: InferenceMemory
    training: TrainingLength | None
    """The length of the training by its budget; None for a budget in epochs or time."""

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


def make_plan(task: Task, layout: Layout, hardware: Hardware, utilization: Utilization) -> Plan:
    """Return the plan of a training of the model of a task that is bound to a processor.

    Raises: NotCounted: the model is not one that is counted.
    Raises: UserError: the layout does not fit the model or its batch, or the budget has another form.
    """
    config, model = task.config, planned_model(task)
    parameters, heads = sum(weight.numel() for weight in model.parameters()), attention_heads(model)
    check_layout(task, model, layout)
    rows = rows_of_micro_batch(task, layout)
    stage = task.with_config(_with_layers(config, -(-config.model.layers // layout.pp), config.training))
    step = count_step(stage, layout, rows, copies_gathers=hardware.copies_gathers)
    batch_tokens = step.tokens * step.micro_batches * layout.dp
    messages = all_messages(step, layout, config.training.activation_checkpointing)
    return Plan(
        layout,
        hardware,
        utilization,
        parameters,
        step,
        peak_memory(step, layout),
        messages,
        step_time(step.operations, messages, layout, step.micro_batches, hardware, utilization),
        task.row_unit,
        batch_tokens,
        attention_matrix(config, rows, heads, step.positions) if heads else None,
        _flops_per_token(task) if isinstance(model, DecoderLM) else step.flops_per_token,
        inference_memory(planned_model(task), step.parameters.own, step.positions, layout),
        length_of_budget(config.training.budget, batch_tokens, task.row_unit),
    )


def _flops_per_token(task: Task) -> float:
    """Return the operations of a whole language model for a token, from models of one layer and of two: the
    others take as many as the second."""
    config = task.config
    training = config.training.model_copy(update={"activation_checkpointing": False})
    one, two = (
        count_step(task.with_config(_with_layers(config, layers, training)), Layout(), 1).flops_per_token
        for layers in (1, 2)
    )
    return one + (config.model.layers - 1) * (two - one)


def _with_layers(config: Config, layers: int, training: TrainingConfig) -> Config:
    model = config.model.model_copy(update={"layers": layers})
    return config.model_copy(update={"model": model, "training": training})
