"""What kinds that choose among classes have in common: one for the whole source, or one for each place."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import nn

from foveal.config import Config
from foveal.core.progress import ProgressCallback, iterate_batches
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.heads.classification import ClassificationHead
from foveal.heads.tagging import TaggingHead
from foveal.metrics.labels import accuracy, macro_f1
from foveal.metrics.tags import are_entity_tags, entity_f1, tag_accuracy, tag_macro_f1
from foveal.models.encoder import EncoderWithHead
from foveal.objectives.classification import ClassificationObjective
from foveal.objectives.tagging import TaggingObjective
from foveal.tasks.base import EvaluationResult, PredictedIds
from foveal.tasks.examples import ExampleTask


class LabelingTask(ExampleTask, ABC):
    """An encoder, and a head that chooses among the labels of its inputs, whatever is read."""

    default_classes: ClassVar[int]
    """Classes of an outline."""

    def model(self, config: Config, processor: Any) -> EncoderWithHead:
        return self.model_for_classes(config, self.encoder(config, processor), len(processor.labels))

    def model_of_default_size(self, config: Config) -> EncoderWithHead:
        return self.model_for_classes(config, self.encoder(config), self.default_classes)

    def model_for_classes(self, config: Config, encoder: Any, classes: int) -> EncoderWithHead:
        """The model with a head for so many classes."""
        return EncoderWithHead(encoder, self.head(config, encoder, classes))

    def predicted_labels(
        self, config: Config, model: Any, processor: Any, examples: Examples, progress: ProgressCallback
    ) -> list[list[str]]:
        """The labels of each source, in their order."""
        work, order = self.objective(config, model, processor), self.example_batches(config, examples)
        outputs: list[list[str]] = [[]] * len(examples)
        for batch in iterate_batches(order, progress):
            for row, numbers in zip(batch.rows.tolist(), self.predicted_ids(work, batch), strict=True):
                outputs[row] = [processor.labels[number] for number in numbers]
        return outputs

    def predicted_texts(
        self, config: Config, model: Any, processor: Any, examples: Examples, progress: ProgressCallback
    ) -> list[str]:
        return [
            " ".join(labels) for labels in self.predicted_labels(config, model, processor, examples, progress)
        ]

    @abstractmethod
    def encoder(self, config: Config, processor: Any = None) -> nn.Module:
        """What reads such inputs; usual ones, if none are given."""

    @abstractmethod
    def head(self, config: Config, encoder: Any, classes: int) -> nn.Module: ...

    @abstractmethod
    def predicted_ids(self, work: Any, batch: ExampleBatch) -> list[list[int]]:
        """The numbers of the labels that the task chooses for each row."""


class ClassificationTask(LabelingTask, ABC):
    """One label for each source."""

    default_classes = 2

    def head(self, config: Config, encoder: Any, classes: int) -> nn.Module:
        return ClassificationHead(encoder.width, classes, config.model.head_pooling, config.model.dropout)

    def objective(
        self, config: Config, model: EncoderWithHead, processor: Any, preview_examples: Any = None
    ) -> ClassificationObjective:
        return ClassificationObjective(model, processor.labels, config.task.label_smoothing)

    def predicted_ids(self, work: Any, batch: ExampleBatch) -> list[list[int]]:
        numbers: list[list[int]] = work.predict_batch(batch).argmax(1, keepdim=True).tolist()
        return numbers

    def score(
        self,
        config: Config,
        model: Any,
        processor: Any,
        data: Any,
        predicted_ids: PredictedIds,
        progress: ProgressCallback,
    ) -> EvaluationResult:
        """The likeliest label: accuracy and macro F1."""
        outputs = [processor.labels[number] for row in range(len(data)) for number in predicted_ids[row]]
        scores = [accuracy(data.references, outputs), macro_f1(data.references, outputs)]
        return EvaluationResult(data.sources, data.references, outputs, data.lengths, scores)


class TaggingTask(LabelingTask, ABC):
    """A label for each place that is asked for: a word, a step."""

    default_classes = 17

    def head(self, config: Config, encoder: Any, classes: int) -> nn.Module:
        return TaggingHead(encoder.width, classes, config.model.dropout)

    def objective(
        self, config: Config, model: EncoderWithHead, processor: Any, preview_examples: Any = None
    ) -> TaggingObjective:
        return TaggingObjective(model, processor.labels, config.task.label_smoothing)

    def predicted_ids(self, work: TaggingObjective, batch: ExampleBatch) -> list[list[int]]:
        rows = zip(work.predict_batch(batch).tolist(), batch.lengths["places"].tolist(), strict=True)
        return [numbers[:places] for numbers, places in rows]

    def score(
        self,
        config: Config,
        model: Any,
        processor: Any,
        data: Any,
        predicted_ids: PredictedIds,
        progress: ProgressCallback,
    ) -> EvaluationResult:
        """The likeliest labels: accuracy and macro F1 over places, and F1 over the entities they may mark."""
        outputs = [[processor.labels[number] for number in predicted_ids[row]] for row in range(len(data))]
        scores = [tag_accuracy(data.references, outputs), tag_macro_f1(data.references, outputs)]
        if are_entity_tags(processor.labels):
            scores.append(entity_f1(data.references, outputs))
        right, found = ([" ".join(row) for row in rows] for rows in (data.references, outputs))
        return EvaluationResult(data.sources, right, found, data.lengths, scores)


def summarize_labels(names: tuple[str, ...]) -> str:
    """How many, and the first of them."""
    return f"{len(names):,} ({', '.join(names[:6])}{' ...' if len(names) > 6 else ''})"
