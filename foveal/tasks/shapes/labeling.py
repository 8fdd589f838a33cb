"""Tasks that predict classes: one label for the whole source, or a label for each place."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import nn

from foveal.config.values import Fraction
from foveal.core.progress import ProgressCallback, iterate_batches, no_progress
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.pairs.labels import LabelEachTarget, LabelTarget
from foveal.data.pairs.target import Target
from foveal.heads.classification import ClassificationHead
from foveal.heads.tagging import TaggingHead
from foveal.metrics.labels import accuracy, macro_f1
from foveal.metrics.tags import are_entity_tags, entity_f1, tag_accuracy, tag_macro_f1
from foveal.models.encoder import EncoderWithHead
from foveal.objectives.classification import ClassificationObjective
from foveal.objectives.tagging import TaggingObjective
from foveal.tasks.base import TaskSettings
from foveal.tasks.baseline import Baseline
from foveal.tasks.results import EvaluationResult, PredictedIds, TaskSummary
from foveal.tasks.shapes.examples import ExampleTask
from foveal.tasks.shapes.fitted_head import fit_ridge_head
from foveal.tasks.shapes.label_baseline import linear_ids, majority_ids


class SmoothedSettings(TaskSettings):
    label_smoothing: Fraction = 0.0
    """Fraction of the target's probability that is spread over all labels or tokens."""


class LabelingTask(ExampleTask, ABC):
    """Base class of tasks with an encoder, and a head that predicts one of the processor's labels."""

    Settings: ClassVar[type[TaskSettings]] = SmoothedSettings
    fits_labels = True
    has_classes = True
    has_decoder = False
    suggested_view = "confusion"
    default_classes: ClassVar[int]
    """The number of classes in `example_model`."""
    place: ClassVar[str] = ""
    """The word for a place that has a label. Empty if the whole source has a single label."""
    examples_in_words: ClassVar[str]
    """The words for the examples in a summary, such as labeled images."""
    speed_unit: ClassVar[str]
    """The unit of speed."""

    def settings_read(self) -> set[str]:
        return super().settings_read() | {"model.dropout"}

    def new_model(self) -> nn.Module:
        return self.model_for_classes(self.encoder(), len(self.processor.target.labels))

    def example_model(self) -> nn.Module:
        return self.model_for_classes(self.encoder(), self.default_classes)

    def model_for_classes(self, encoder: Any, classes: int) -> EncoderWithHead:
        """Return the model with a head for `classes` classes."""
        return EncoderWithHead(encoder, self.head(encoder, classes))

    @property
    def label_smoothing(self) -> float:
        """The label smoothing of the objective, for tasks with `SmoothedSettings`."""
        assert isinstance(self.settings, SmoothedSettings)
        return self.settings.label_smoothing

    def predicted_labels(self, examples: Examples, progress: ProgressCallback) -> list[list[str]]:
        """Return the labels of each source, in the examples' order."""
        objective, outputs = self.objective(), [list[str]()] * len(examples)
        for batch in iterate_batches(self.example_batches(examples), progress):
            for row, ids in zip(batch.rows.tolist(), self.choose_ids(objective, batch), strict=True):
                outputs[row] = [self.label_text(examples, row, label_id) for label_id in ids]
        return outputs

    def summarize(self, prepared: PreparedData[Any, Any]) -> TaskSummary:
        labels = prepared.processor.target.labels
        each = f" for each {self.place}," if self.place else ""
        task = f"{self.name}: {summarize_labels(labels)}{each} from {self.source_in_words()}"
        return TaskSummary(self.examples_in_words, task, len(labels), self.speed_unit)

    @abstractmethod
    def source_in_words(self) -> str:
        """Return a description of what the model reads of a source."""

    def label_text(self, examples: Any, row: int, number: int) -> str:
        """Return the text of a label of a row."""
        label: str = self.processor.target.labels[number]
        return label

    def predicted_texts(self, examples: Any, progress: ProgressCallback) -> list[str]:
        return [" ".join(labels) for labels in self.predicted_labels(examples, progress)]

    @abstractmethod
    def encoder(self) -> nn.Module:
        """Return the encoder for the processor's sources. Without a processor, use default sizes."""

    @abstractmethod
    def head(self, encoder: Any, classes: int) -> nn.Module:
        """Return the head for an encoder."""

    @abstractmethod
    def choose_ids(self, objective: Any, batch: ExampleBatch) -> list[list[int]]:
        """Return the ids of the likeliest labels of each row."""


class ClassificationTask(LabelingTask, ABC):
    """One label for each source."""

    target_kind = "label"
    target: ClassVar[Target[Any]] = LabelTarget()
    default_classes = 2

    def settings_read(self) -> set[str]:
        return super().settings_read() | {"model.head_pooling", "model.head_fit"}

    def head(self, encoder: Any, classes: int) -> nn.Module:
        model = self.config.model
        return ClassificationHead(encoder.width, classes, model.head_pooling, model.dropout)

    def objective(self, preview_examples: Any = None) -> ClassificationObjective:
        return ClassificationObjective(self.model, self.processor.target.labels, self.label_smoothing)

    def baseline(self, train: Any, held_out: Any) -> Baseline | None:
        classes, seed = len(self.processor.target.labels), self.config.training.seed
        linear = f"a linear classifier of {self.source.simple_features_in_words}"
        candidates = {
            "the most frequent label": majority_ids(train, held_out),
            linear: linear_ids(self.source, train, held_out, classes, seed),
        }
        scored = []
        for name, ids in candidates.items():
            if ids:
                result = self.score(held_out, {row: [label] for row, label in enumerate(ids)}, no_progress)
                scored.append(Baseline(name, result.scores[0].name, result.scores[0].value))
        return max(scored, key=lambda baseline: baseline.value)

    def fit_head(self, data: Any, progress: ProgressCallback) -> bool:
        if self.config.model.head_fit == "none":
            return False
        fit_ridge_head(self.model, self.example_batches(data.examples), progress)
        return True

    def choose_ids(self, objective: Any, batch: ExampleBatch) -> list[list[int]]:
        ids: list[list[int]] = objective.predict_batch(batch).argmax(1, keepdim=True).tolist()
        return ids

    def score(self, data: Any, predicted_ids: PredictedIds, progress: ProgressCallback) -> EvaluationResult:
        """Return accuracy and macro F1 of the likeliest labels."""
        labels = self.processor.target.labels
        outputs = [labels[label_id] for row in range(len(data)) for label_id in predicted_ids[row]]
        scores = [accuracy(data.references, outputs), macro_f1(data.references, outputs)]
        return EvaluationResult(data.sources, data.references, outputs, data.lengths, scores)


class TaggingTask(LabelingTask, ABC):
    """A label for each labeled place of a source, such as a word or a step."""

    target_kind = "labels"
    target: ClassVar[Target[Any]] = LabelEachTarget()
    default_classes = 17

    def head(self, encoder: Any, classes: int) -> nn.Module:
        return TaggingHead(encoder.width, classes, self.config.model.dropout)

    def objective(self, preview_examples: Any = None) -> TaggingObjective:
        return TaggingObjective(self.model, self.processor.target.labels, self.label_smoothing)

    def choose_ids(self, objective: TaggingObjective, batch: ExampleBatch) -> list[list[int]]:
        rows = zip(objective.predict_batch(batch).tolist(), batch.lengths["places"].tolist(), strict=True)
        return [ids[:count] for ids, count in rows]

    def score(self, data: Any, predicted_ids: PredictedIds, progress: ProgressCallback) -> EvaluationResult:
        """Return accuracy and macro F1 over places, and F1 over entities if the labels mark entities."""
        labels = self.processor.target.labels
        outputs = [[labels[label_id] for label_id in predicted_ids[row]] for row in range(len(data))]
        scores = [tag_accuracy(data.references, outputs), tag_macro_f1(data.references, outputs)]
        if are_entity_tags(labels):
            scores.append(entity_f1(data.references, outputs))
        references, texts = ([" ".join(row) for row in rows] for rows in (data.references, outputs))
        return EvaluationResult(data.sources, references, texts, data.lengths, scores)


def summarize_labels(names: tuple[str, ...]) -> str:
    """Return a description of the labels: their number, and the first of them."""
    return f"{len(names):,} ({', '.join(names[:6])}{' ...' if len(names) > 6 else ''})"
