"""Tasks that predict classes: one label for the whole source, or a label for each place."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from itertools import chain, islice
from operator import eq
from typing import Any, ClassVar

from torch import nn

from foveal.config.values import Fraction
from foveal.core.progress import ProgressCallback
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.pairs.labels import LabelEachTarget, LabelTarget
from foveal.data.pairs.target import Target
from foveal.heads.classification import ClassificationHead
from foveal.heads.tagging import TaggingHead
from foveal.metrics.calibration import calibration_error
from foveal.metrics.labels import accuracy, macro_f1
from foveal.metrics.score import MetricResult
from foveal.metrics.tags import are_entity_tags, entity_f1, tag_accuracy, tag_macro_f1
from foveal.models.encoder import EncoderWithHead
from foveal.objectives.classification import ClassificationObjective
from foveal.objectives.tagging import TaggingObjective
from foveal.tasks.base import TaskSettings
from foveal.tasks.baseline import Baseline, SimpleAnswers, best_baseline
from foveal.tasks.defaults import ClosedForm, Defaults, DefaultsRequest
from foveal.tasks.facts import ScoredSettings
from foveal.tasks.results import Alternative, Answer, EvaluationResult, LabelsByRow, TaskSummary
from foveal.tasks.shapes.examples import ExampleTask
from foveal.tasks.shapes.fitted_head import fit_ridge_head
from foveal.tasks.shapes.label_baseline import (
    has_too_many_classes,
    linear_ids,
    linear_memory,
    linear_seconds,
    majority_ids,
)
from foveal.tasks.shapes.likeliest_labels import LikeliestLabels, likeliest_labels
from foveal.tasks.shapes.named_head import check_named_head, make_named_head, names_head
from foveal.tasks.shapes.named_metrics import check_metrics, named_scores


class SmoothedSettings(ScoredSettings):
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
    takes_heads: ClassVar[bool] = True
    """Whether the config may name another head."""

    def settings_read(self) -> set[str]:
        heads = {"model.head"} if self.takes_heads else set[str]()
        return super().settings_read() | heads | (set() if self.has_own_head else {"model.dropout"})

    def check(self) -> None:
        super().check()
        check_metrics(self.settings, self.target_kind)
        if self.takes_heads:
            check_named_head(self.config.model, self.name, self.target_kind)

    @property
    def label_column(self) -> str:
        return self.target.column(self.config.data)

    @property
    def has_own_head(self) -> bool:
        """Return whether the config names a head, in place of the one of the task or of the network."""
        return self.takes_heads and names_head(self.config.model)

    def new_model(self) -> nn.Module:
        return self.model_for_classes(self.encoder(), len(self.processor.target.labels))

    def example_model(self) -> nn.Module:
        return self.model_for_classes(self.encoder(), self.default_classes)

    def model_for_classes(self, encoder: Any, classes: int) -> EncoderWithHead:
        """Return the model with a head for `classes` classes."""
        return EncoderWithHead(encoder, self.make_head(encoder, classes))

    def make_head(self, encoder: Any, classes: int) -> nn.Module:
        """Return the head that the config names, or that of the task."""
        if self.has_own_head:
            return make_named_head(self.config.model, encoder.width, classes)
        return self.head(encoder, classes)

    @property
    def label_smoothing(self) -> float:
        """The label smoothing of the objective, for tasks with `SmoothedSettings`."""
        assert isinstance(self.settings, SmoothedSettings)
        return self.settings.label_smoothing

    def predicted_labels(self, examples: Examples, progress: ProgressCallback) -> list[list[str]]:
        """Return the labels of each source, in the examples' order."""
        texts = [answer.text for answer in self.answers(examples, 1, progress)]
        return [[text] if isinstance(text, str) else text for text in texts]

    def answers(self, examples: Any, top: int, progress: ProgressCallback) -> list[Answer]:
        objective: Any = self.objective()

        def answer(row: int, places: list[LikeliestLabels]) -> Answer:
            labels = self.labels_of(examples, row)
            return self.make_answer(
                [[Alternative(labels[i], share) for i, share in place if i < len(labels)] for place in places]
            )

        def answers(batch: ExampleBatch) -> list[Answer]:
            likeliest = likeliest_labels(objective.class_logits(batch), top)
            return [*map(answer, batch.rows.tolist(), self.split_rows(batch, likeliest))]

        return self.by_row(self.example_batches(examples), answers, progress)

    @property
    def num_outcomes(self) -> int | None:
        return len(self.processor.target.labels)

    def summarize(self, prepared: PreparedData[Any, Any]) -> TaskSummary:
        labels = prepared.processor.target.labels
        each = f" for each {self.place}," if self.place else ""
        task = f"{self.name}: {summarize_labels(labels)}{each} from {self.source_in_words()}"
        return TaskSummary(self.examples_in_words, task, self.num_outcomes, self.speed_unit)

    @abstractmethod
    def source_in_words(self) -> str:
        """Return a description of what the model reads of a source."""

    def labels_of(self, examples: Any, row: int) -> Sequence[str]:
        """Return the labels among which the model chooses for a row."""
        return self.labels

    @abstractmethod
    def encoder(self) -> nn.Module:
        """Return the encoder for the processor's sources. Without a processor, use default sizes."""

    @abstractmethod
    def head(self, encoder: Any, classes: int) -> nn.Module:
        """Return the head for an encoder."""

    @abstractmethod
    def split_rows(self, batch: ExampleBatch, places: list[LikeliestLabels]) -> list[list[LikeliestLabels]]:
        """Return the places of each row of a batch. All places of the batch are in order in `places`."""

    @abstractmethod
    def make_answer(self, places: list[list[Alternative]]) -> Answer:
        """Return the answer to a source, from the likeliest labels of its places."""


class ClassificationTask(LabelingTask, ABC):
    """One label for each source."""

    target_kind = "label"
    target: ClassVar[Target[Any]] = LabelTarget()
    default_classes = 2
    closed_form: ClassVar[ClosedForm | None] = None
    """The classifier for few rows; None if there is none."""

    def defaults(self, request: DefaultsRequest) -> Defaults:
        if self.closed_form is None or request.trains:
            return Defaults(self.preset)
        return self.closed_form.defaults(len(self.training_targets(request.data)), self.preset)

    def settings_read(self) -> set[str]:
        fitted = set[str]() if self.has_own_head else {"model.head_pooling", "model.head_fit"}
        return super().settings_read() | fitted

    def head(self, encoder: Any, classes: int) -> nn.Module:
        model = self.config.model
        return ClassificationHead(encoder.width, classes, model.head_pooling, model.dropout)

    def objective(self, preview_examples: Any = None) -> ClassificationObjective:
        return ClassificationObjective(self.model, self.processor.target.labels, self.label_smoothing)

    def baseline(self, train: Any, held_out: Any) -> Baseline | None:
        def score(references: list[str], outputs: list[str]) -> MetricResult:
            return self.label_scores(references, outputs)[0]

        return best_baseline(self.simple_answers(train, held_out), held_out.references, score)

    def simple_answers(self, train: Any, held_out: Any) -> SimpleAnswers:
        """Return the labels that simple methods predict for the held-out rows."""
        labels, seed = self.processor.target.labels, self.config.training.seed
        many = f" ({len(labels):,} labels are too many for a linear classifier)"
        frequent = f"the most frequent label{many if has_too_many_classes(train, len(labels)) else ''}"
        ids = {
            frequent: majority_ids(train, held_out),
            f"a linear classifier of {self.source.simple_features_in_words}": linear_ids(
                self.source, train, held_out, len(labels), seed
            ),
        }
        return {name: [labels[label] for label in each] for name, each in ids.items() if each}

    def try_outputs(self, train: Any, held_out: Any) -> float:
        return linear_seconds(self.source, train, len(self.labels))

    def baseline_memory(self, train: Any, held_out: Any) -> int:
        return linear_memory(self.source, train, len(held_out), len(self.labels))

    @property
    def fits_head(self) -> bool:
        return self.config.model.head_fit != "none"

    def fit_head(self, data: Any, progress: ProgressCallback) -> bool:
        if not self.fits_head:
            return False
        fit_ridge_head(self.model, self.example_batches(data.examples), progress)
        return True

    def split_rows(self, batch: ExampleBatch, places: list[LikeliestLabels]) -> list[list[LikeliestLabels]]:
        return [[place] for place in places]

    def make_answer(self, places: list[list[Alternative]]) -> Answer:
        (top,) = places
        return Answer(top[0].answer, top[0].probability, top)

    def score(self, data: Any, predicted: LabelsByRow, progress: ProgressCallback) -> EvaluationResult:
        """Return accuracy, macro F1 and calibration error of the likeliest labels."""
        rows = [predicted[row] for row in range(len(data))]
        labels = (self.labels_of(data.examples, row) for row in range(len(data)))
        outputs = [names[row.ids[0]] for names, row in zip(labels, rows, strict=True)]
        references = [*data.references]
        is_correct = [[text == output] for text, output in zip(references, outputs, strict=True)]
        scores = self.label_scores(references, outputs)
        scores += named_scores(self.settings, references, outputs, scores)
        scores.append(calibration_error([row.probabilities for row in rows], is_correct))
        losses = [row.loss for row in rows]
        return EvaluationResult(data.sources, references, outputs, data.lengths, scores, losses)

    def label_scores(self, references: list[str], outputs: list[str]) -> list[MetricResult]:
        """Return the scores of the likeliest labels."""
        return [accuracy(references, outputs), macro_f1(references, outputs)]


class TaggingTask(LabelingTask, ABC):
    """A label for each labeled place of a source, such as a word or a step."""

    target_kind = "labels"
    sequence = "row"
    target: ClassVar[Target[Any]] = LabelEachTarget()
    default_classes = 17

    def head(self, encoder: Any, classes: int) -> nn.Module:
        return TaggingHead(encoder.width, classes, self.config.model.dropout)

    def objective(self, preview_examples: Any = None) -> TaggingObjective:
        return TaggingObjective(self.model, self.processor.target.labels, self.label_smoothing)

    def baseline(self, train: Any, held_out: Any) -> Baseline:
        """Return the score of the most frequent label."""
        frequent = Counter(chain.from_iterable(train.references)).most_common(1)[0][0]
        outputs = [[frequent] * len(labels) for labels in held_out.references]
        return Baseline.of("the most frequent label", tag_accuracy([*held_out.references], outputs))

    def split_rows(self, batch: ExampleBatch, places: list[LikeliestLabels]) -> list[list[LikeliestLabels]]:
        remaining = iter(places)
        return [[*islice(remaining, count)] for count in batch.lengths["places"].tolist()]

    def make_answer(self, places: list[list[Alternative]]) -> Answer:
        return Answer([top[0].answer for top in places], [top[0].probability for top in places], places)

    def score(self, data: Any, predicted: LabelsByRow, progress: ProgressCallback) -> EvaluationResult:
        """Return accuracy, macro F1 and calibration error over places, and F1 over entities if the labels
        mark entities."""
        labels, rows = self.labels, [predicted[row] for row in range(len(data))]
        outputs = [[labels[label_id] for label_id in row.ids] for row in rows]
        references = [*data.references]
        is_correct = [[*map(eq, *pair)] for pair in zip(references, outputs, strict=True)]
        scores = [tag_accuracy(references, outputs), tag_macro_f1(references, outputs)]
        scores.append(calibration_error([row.probabilities for row in rows], is_correct))
        if are_entity_tags(labels):
            scores.append(entity_f1(references, outputs))
        scores += named_scores(self.settings, references, outputs, scores)
        joined, texts = ([" ".join(row) for row in rows] for rows in (references, outputs))
        losses = [row.loss for row in rows]
        return EvaluationResult(data.sources, joined, texts, data.lengths, scores, losses, place=self.place)


def summarize_labels(names: tuple[str, ...]) -> str:
    """Return a description of the labels: their number, and the first of them."""
    return f"{len(names):,} ({', '.join(names[:6])}{' ...' if len(names) > 6 else ''})"
