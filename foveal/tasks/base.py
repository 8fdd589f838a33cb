"""What a kind of task brings: its data, its inputs' processors, its model, its scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from torch import nn

from foveal.config import Config
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data.core.prepared_data import NO_REUSE, PreparedData, ReusedProcessors
from foveal.data.core.rows import SkippedRow
from foveal.metrics.score import MetricResult
from foveal.training.protocols import Batches, Objective

PredictedIds = dict[int, list[int]]
"""Of each row the numbers of its labels (`core.result`)."""


class DataPaths(NamedTuple):
    """What the user typed: paths, or names of the catalogue."""

    data: str
    valid: str | None = None
    test: str | None = None


@dataclass(frozen=True)
class TaskSummary:
    """A task on its data in words, to be said before training."""

    data: str
    task: str
    num_outcomes: int | None
    """A model that knows nothing has a loss of `ln num_outcomes`; None where it begins knowing something."""
    unit: str
    """What speed is counted in."""


class Predictions(NamedTuple):
    """Of each source what the model makes of it, and how probable it holds that, where it says so."""

    sources: list[str]
    outputs: list[str]
    probabilities: list[float] | None = None
    locations: list[str] | None = None
    """Where each stands in the data."""
    skipped: Sequence[SkippedRow] = ()
    """What gets no answer."""


@dataclass(frozen=True)
class EvaluationResult:
    """What a model made of held-out examples, beside what was right, in their order; and the scores of it."""

    sources: list[str]
    references: list[str]
    outputs: list[str]
    lengths: list[int]
    """Of the sources, for a breakdown."""
    scores: list[MetricResult]


@runtime_checkable
class Task(Protocol):
    """One file of `foveal.tasks`. `Any` stands for its own inputs (a tokenizer, say) and parts of data."""

    def prepare(
        self,
        config: Config,
        data_paths: DataPaths,
        log: Log,
        processor: Any = None,
        reused: ReusedProcessors = NO_REUSE,
    ) -> PreparedData[Any, Any]:
        """Read and split the data.

        `processor` are to be used; else they are made from the training part, but for what is `reused`.
        """

    def prepare_held_out(
        self, config: Config, data: str, processor: Any, log: Log
    ) -> tuple[Any, dict[str, Any]]:
        """All of `data`, to be measured on, and its facts."""

    def load_processor(self, folder: Path) -> Any: ...

    def processor_files(self, processor: Any) -> dict[str, bytes]:
        """What `load_processor` reads back."""

    def model(self, config: Config, processor: Any) -> nn.Module: ...

    def model_of_default_size(self, config: Config) -> nn.Module:
        """The model with a vocabulary of the usual size, to be described."""

    def objective(
        self, config: Config, model: Any, processor: Any, preview_examples: Any = None
    ) -> Objective:
        """`preview_examples` is held-out data to take previews from."""

    def train_batches(self, config: Config, data: Any) -> Batches: ...

    def eval_batches(self, config: Config, data: Any) -> Batches: ...

    def summarize(self, config: Config, data: PreparedData[Any, Any]) -> TaskSummary: ...

    def describe_size(self, facts: dict[str, Any]) -> str:
        """How much a part is, in words."""

    def predict(
        self, config: Config, model: Any, processor: Any, data: str, log: Log, progress: ProgressCallback
    ) -> "Predictions | None":
        """What the model makes of each source of `data`; None for a language model."""

    def score(
        self,
        config: Config,
        model: Any,
        processor: Any,
        data: Any,
        predicted_ids: PredictedIds,
        progress: ProgressCallback,
    ) -> "EvaluationResult | None":
        """What the model makes of held-out data, scored; None where the loss says it all.

        `predicted_ids` is what its task chose while the loss was measured, where it chooses.
        """
