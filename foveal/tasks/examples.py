"""What the kinds that learn from examples (pairs, labelled texts and series) have in common."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from torch import nn

from foveal.config import Config
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data import prepare_examples
from foveal.data.core.examples import Examples
from foveal.data.core.length_buckets import BucketedEvalBatches, BucketedTrainBatches
from foveal.data.core.prepared_data import NO_REUSE, PreparedData, ReusedProcessors
from foveal.data.files.format import DataFormat
from foveal.data.text.special_tokens import SpecialTokens
from foveal.data.text.tokenizers import Tokenizer
from foveal.encoders.text import TextEncoder
from foveal.models.encoder import text_encoder
from foveal.tasks.base import DataPaths, EvaluationResult, PredictedIds, Predictions, TaskSummary
from foveal.training.protocols import Batches, Objective


def default_vocab_size(config: Config) -> int:
    """How many tokens such a tokenizer has on usual texts."""
    return {"character": 100, "byte": 256}.get(config.data.tokenizer, config.data.vocab_size)


def text_encoder_for(config: Config, source: Tokenizer | None) -> TextEncoder:
    """The encoder of a tokenizer's texts; of usual ones, if none is given."""
    size = default_vocab_size(config) if source is None else source.size
    return text_encoder(config.model.encoder, SpecialTokens(size).vocab_size, config.data.max_length)


class ExampleTask(ABC):
    """A `Task` whose data are examples of one form, batched by length."""

    def __init__(self, form: DataFormat):
        self.form = form

    def prepare(
        self,
        config: Config,
        data_paths: DataPaths,
        log: Log,
        processor: Any = None,
        reused: ReusedProcessors = NO_REUSE,
    ) -> PreparedData[Any, Any]:
        return prepare_examples.prepare_examples(
            self.form, data_paths.data, data_paths.valid, data_paths.test, config.data, log, processor, reused
        )

    def prepare_held_out(
        self, config: Config, data: str, processor: Any, log: Log
    ) -> tuple[Any, dict[str, Any]]:
        return prepare_examples.prepare_eval_examples(self.form, data, config.data, processor, log)

    def load_processor(self, folder: Path) -> Any:
        return self.form.load_processor(folder)

    def processor_files(self, processor: Any) -> dict[str, bytes]:
        files: dict[str, bytes] = processor.files()
        return files

    def train_batches(self, config: Config, data: Any) -> Batches:
        return BucketedTrainBatches(data.examples, config.data.batch_tokens, config.training.seed)

    def eval_batches(self, config: Config, data: Any) -> Batches:
        return self.example_batches(config, data.examples)

    def example_batches(self, config: Config, examples: Any) -> Batches:
        """Every example in one batch or another."""
        return BucketedEvalBatches(examples, config.data.batch_tokens)

    def describe_size(self, facts: dict[str, Any]) -> str:
        return f"{facts['examples']:,}"

    @abstractmethod
    def model(self, config: Config, processor: Any) -> nn.Module: ...

    @abstractmethod
    def model_of_default_size(self, config: Config) -> nn.Module: ...

    @abstractmethod
    def objective(
        self, config: Config, model: Any, processor: Any, preview_examples: Any = None
    ) -> Objective: ...

    @abstractmethod
    def summarize(self, config: Config, data: PreparedData[Any, Any]) -> TaskSummary: ...

    def predict(
        self, config: Config, model: Any, processor: Any, data: str, log: Log, progress: ProgressCallback
    ) -> Predictions:
        asked = prepare_examples.read_unlabeled(self.form, data, processor, config.data, log)
        found, sure = self.predict_with_probabilities(config, model, processor, asked.examples, progress)
        texts = (row.fields["source"] for row in asked.rows)
        sources = [text if isinstance(text, str) else " ".join(text) for text in texts]
        return Predictions(sources, found, sure, [row.location for row in asked.rows], asked.skipped)

    def predict_with_probabilities(
        self, config: Config, model: Any, processor: Any, examples: Examples, progress: ProgressCallback
    ) -> tuple[list[str], list[float] | None]:
        """The same as `predicted_texts`, with the probability of each, if the model has one."""
        return self.predicted_texts(config, model, processor, examples, progress), None

    @abstractmethod
    def predicted_texts(
        self, config: Config, model: Any, processor: Any, examples: Examples, progress: ProgressCallback
    ) -> list[str]:
        """What the model makes of each source, in their order, as text."""

    @abstractmethod
    def score(
        self,
        config: Config,
        model: Any,
        processor: Any,
        data: Any,
        predicted_ids: PredictedIds,
        progress: ProgressCallback,
    ) -> EvaluationResult | None: ...
