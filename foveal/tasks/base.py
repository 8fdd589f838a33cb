"""The base class of tasks. A task is bound to a config, a processor and a model."""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor, nn

from foveal.config import Config, ConfigError, validate_section
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data.core.hash_split import SplitName
from foveal.data.core.prepared_data import NO_REUSE, PreparedData, ReusedProcessors
from foveal.data.open import DataPaths, OpenedData
from foveal.generation.events import GenerationEvent
from foveal.generation.request import GenerateRequest
from foveal.models.encoder_registry import encoder_settings, plugin_encoders
from foveal.models.stack_settings import keys_below
from foveal.tasks.answering import AnsweringTask
from foveal.tasks.baseline import Baseline
from foveal.tasks.components import ModelComponent, encoder_components, stack_component
from foveal.tasks.defaults import Defaults, DefaultsRequest
from foveal.tasks.facts import TOKEN, TaskFacts, TaskSettings
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.results import EvaluationResult, LabelsByRow, TaskSummary
from foveal.tasks.without_data import TaskWithoutData
from foveal.training.protocols import Batches, Objective

TaskT = TypeVar("TaskT", bound="Task")
FEW_HELD_OUT = 10
"""A split with fewer rows or documents is told before training."""
__all__ = ["TOKEN", "Task", "TaskSettings"]


class Task(TaskFacts, TaskWithoutData, AnsweringTask):
    """The base class of tasks. A subclass with a `name` is a task, in a file or folder with everything that
    only this task has.

    Other code asks a task for facts or calls its methods, and never compares its name. `Any` is the task's
    own type of processor (such as a tokenizer), of model, or of a split.
    """

    settings: TaskSettings

    def __init__(self, config: Config, processor: Any = None, model: Any = None):
        """Bind the task to a config, whose section `data` becomes one of the task's `DataSettings`.

        Raises: ConfigError: a setting of the section `task` or `data` is unknown or does not fit.
        """
        if type(config.data) is not self.DataSettings:
            data = validate_section(self.DataSettings, config.data.model_dump(), "data")
            config = config.model_copy(update={"data": data})
        self.config, self.processor, self.model = config, processor, model
        table = config.task.model_dump()
        for key, reason in self.refused_settings.items():
            if key in table:
                raise ConfigError(f"task.{key}: {reason}; leave it out")
        self.settings = validate_section(self.Settings, table, "task")

    def bind(self: TaskT, processor: Any, model: Any = None) -> TaskT:
        """Return the task with a processor, and with a model if given."""
        return type(self)(self.config, processor, model)

    def with_config(self: TaskT, config: Config) -> TaskT:
        """Return the task with another config, but the same processor and model."""
        return type(self)(config, self.processor, self.model)

    @classmethod
    def fixed_settings(cls) -> tuple[str, ...]:
        """Return the settings beside `model.encoder` that an encoder fixes for runs that start from it."""
        return ()

    def settings_read(self) -> set[str]:
        """Return the keys of the settings below `data`, `model` and `task` that the task reads.

        The key of a section stands for all of its settings.
        """
        own, encoder = self.Settings.model_fields, self.config.model.encoder
        return {"model.initialization", *encoder_settings(encoder), *keys_below("task", own)}

    @classmethod
    def accepted_encoders(cls) -> tuple[str, ...]:
        """Return the kinds of encoder that the task takes, with those of plugins."""
        each_place = cls.target_kind == "labels"
        return *cls.encoders, *(plugin_encoders(cls.encoder_source, each_place) if cls.encoder_source else ())

    def check_encoder(self) -> None:
        """Check that the model has an encoder for the task's source.

        Raises: ValueError: there is no such encoder; the error says which setting to change.
        """
        accepted = self.accepted_encoders()
        if self.config.model.encoder.kind not in accepted:
            need = "no encoder" if self.encoders == ("none",) else "an encoder of what it reads"
            raise ValueError(
                f"task.name={self.name} needs {need}: take a preset of that task, or set "
                f"model.encoder.kind={' or '.join(accepted)}"
            )

    def check(self) -> None:
        """Check that the settings that are read fit the task.

        Raises: ValueError: a setting does not fit; the error says which setting to change.
        """
        model = self.config.model
        if not self.balances_experts and "moe" in (model.feedforward, model.encoder.feedforward):
            raise ValueError(
                f"task.name={self.name} balances no experts: take another model.feedforward, such as mlp"
            )

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return how well `data` fits; `named` are the user's settings `data.*` that name columns."""
        return NO_FIT

    @classmethod
    def columns_hint(cls, data: OpenedData) -> str:
        """Return how to train on a table whose columns look like the task's under other names. Empty if they
        don't."""
        return ""

    def defaults(self, request: DefaultsRequest) -> Defaults:
        """Return the defaults for data of some size and shape.

        The task is bound to the config of its own preset, with the user's settings.
        """
        return Defaults(self.preset)

    @abstractmethod
    def prepare(
        self, paths: DataPaths, log: Log, reused: ReusedProcessors = NO_REUSE
    ) -> PreparedData[Any, Any]:
        """Read and split the data. Fit a processor to the training split if the task has none yet.

        `reused` are processors of an earlier run that the new processor keeps.
        """

    def labeled_splits(self, data: OpenedData) -> Collection[SplitName]:
        """Return the splits of DATA that `prepare` uses: those with what the task learns."""
        return data.splits

    @abstractmethod
    def prepare_held_out(self, data: str, log: Log) -> tuple[Any, dict[str, Any]]:
        """Return all of `data` as a held-out split, and facts about it."""

    @abstractmethod
    def load_processor(self, folder: Path) -> Any:
        """Read a processor from the files whose contents `processor_files` returned."""

    @abstractmethod
    def processor_files(self) -> dict[str, bytes]:
        """Return the contents of the processor's files by name."""

    @abstractmethod
    def new_model(self) -> nn.Module:
        """Return a model for the processor, with uninitialized weights."""

    @abstractmethod
    def example_model(self) -> nn.Module:
        """Return a model for data of default sizes, for `models describe`."""

    @abstractmethod
    def objective(self, preview_examples: Any = None) -> Objective:
        """Return the objective of the model. Previews show `preview_examples`, a held-out split."""

    @abstractmethod
    def train_batches(self, data: Any) -> Batches:
        """Return the micro-batches of the training split."""

    @abstractmethod
    def eval_batches(self, data: Any) -> Batches:
        """Return batches that contain every example of a held-out split once."""

    @abstractmethod
    def summarize(self, prepared: PreparedData[Any, Any]) -> TaskSummary:
        """Return the description of the task on its data."""

    def describe_size(self, facts: dict[str, Any]) -> str:
        """Return the size of a split in words."""
        return f"{facts['examples']:,}"

    def held_out_note(self, facts: Mapping[str, dict[str, Any]]) -> str:
        """Return what scores on small held-out splits mean; empty if the splits are not small.

        `facts` are the facts about each split.
        """
        small = {name: part["examples"] for name, part in facts.items() if name != "train"}
        small = {name: count for name, count in small.items() if count < FEW_HELD_OUT}
        if not small:
            return ""
        sizes = " and ".join(f"{count:,} in {name}" for name, count in small.items())
        return f"only {sizes}: a score on so few examples says little"

    @property
    def first_loss_unit(self) -> str:
        """The unit of the first loss, shown before training."""
        return "nats"

    def components(self) -> list[ModelComponent]:
        """Return the stacks and networks of the model, from input to output."""
        model = self.config.model
        if model.encoder.kind == "none":
            return [stack_component("", model)]
        encoder = encoder_components(model.encoder)
        return [*encoder, stack_component("decoder", model)] if self.has_decoder else encoder

    def score(self, data: Any, predicted: LabelsByRow, progress: ProgressCallback) -> EvaluationResult | None:
        """Return scores of the model's outputs for a held-out split; None if the loss is the only score.

        `predicted` are the labels that the objective predicted while it computed the loss, if any.
        """
        return None

    def try_outputs(self, train: Any, held_out: Any) -> float:
        """Generate a part of the outputs for a held-out split. Return the seconds that all of them take, and
        the baseline."""
        return 0.0

    def check_generate(self, request: GenerateRequest) -> None:
        """Check the options of `foveal generate` before any other work.

        Raises: UserError: the task does not use an option, or options contradict each other.
        """
        raise UserError(
            f"{request.run} answers what it reads (task {self.name}): foveal predict {request.run} DATA"
        )

    def generate(
        self, request: GenerateRequest, log: Log, progress: ProgressCallback
    ) -> Iterator[GenerationEvent]:
        """Yield the generated outputs. A task prints nothing and writes no file."""
        self.check_generate(request)
        return iter(())

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes of the processor's labels; none for a task without classes."""
        return ()

    def processor_for(self, config: Config) -> Any:
        """Return the processor of a run for a new run with another config."""
        return self.processor

    def processor_to_reuse(self, new_task: "Task") -> Any:
        """Return the part of a run's processor that its encoder needs, for a task that reuses the encoder."""
        return self.processor.source

    def encoder_weights(self, tensors: dict[str, Tensor], encoder: nn.Module) -> dict[str, Tensor]:
        """Return the weights of a run under the names that they have in an `encoder` of another task."""
        return tensors

    def adapt_weights(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights of a run of this task, adapted to the parts of the task's own model."""
        return tensors

    def reset_head(self) -> None:
        """Initialize the weights of a new head for an encoder from another run."""

    def with_smooth_loss(self) -> "Task":
        """Return the task with an objective that always has a gradient, for views of activations."""
        return self

    def fit_inputs(self, data: Any) -> tuple[Tensor, ...]:
        """Return encoder inputs of a training split, for initial weights that are computed from data."""
        raise UserError(f"task.name={self.name} computes no weights from data: take another model")

    def baseline(self, train: Any, held_out: Any) -> Baseline | None:
        """Return the best score of simple methods on a held-out split; None if the task has none."""
        return None

    def baseline_memory(self, train: Any, held_out: Any) -> int:
        """Return the bytes that `baseline` needs for a moment."""
        return 0

    def store_training_data(self, data: Any) -> bool:
        """Store a training split in buffers of the model, if the model keeps some. Return whether it does."""
        return False

    @property
    def fits_head(self) -> bool:
        """Return whether the config says that the head is fitted in closed form."""
        return False

    def fit_head(self, data: Any, progress: ProgressCallback) -> bool:
        """Fit the head in closed form to a training split, if the config says so. Return whether it does."""
        return False
