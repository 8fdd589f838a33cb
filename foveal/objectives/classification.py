"""Classification: one label for each source."""

import math
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.core.result import ObjectiveOutput, PredictedLabels, Term
from foveal.core.runtime import at_least_float32
from foveal.core.state import State
from foveal.data.core.batching import ExampleBatch
from foveal.heads.classification import ClassificationHead
from foveal.models.encoder import EncoderWithHead
from foveal.objectives.aux_terms import aux_terms
from foveal.objectives.predicted_labels import at_temperature, predicted_labels
from foveal.objectives.stateless import StatelessObjective
from foveal.ops.cross_entropy import MIN_CHUNKED_CLASSES, linear_argmax, linear_cross_entropy

ROWS_AT_ONCE = 64
"""Rows whose logits are computed at once where there are many classes."""


class ClassificationObjective(StatelessObjective):
    """`-log p(label | source)` in nats for each source.

    Columns of a batch: `source`, `label`. Mixed sources also have `other` and `share`
    (`data.images.augmentation.mixup`). A negative label is a class that does not occur in the training data:
    such a row has no loss, and counts as wrong.
    """

    def __init__(self, model: EncoderWithHead, labels: tuple[str, ...], label_smoothing: float = 0.0):
        self.model, self.labels, self.label_smoothing = model, labels, label_smoothing
        self.aux_names = list(model.encoder.aux_names)

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        """Return the weight of each term, from the batch alone."""
        labeled = float(batch.columns["label"].ge(0).sum())
        return {"loss": labeled} | dict.fromkeys(self.aux_names, float(len(batch.rows)))

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        batch = batch.to(next(self.model.parameters()).device)
        labels, weights, training = batch.columns["label"], self.weights(batch), self.model.training
        smoothing = self.label_smoothing if training else 0.0
        predicted: dict[int, PredictedLabels] = {}
        if self._has_many_classes(batch):
            features, aux = self._features(batch)
            objective, loss, likeliest = self._in_chunks(features, labels, smoothing)
            if not training:
                for part in _row_slices(len(labels)):
                    predicted |= self._predicted(
                        batch.rows[part], self._project(features[part]), labels[part]
                    )
        else:
            logits, aux = self._logits(batch)
            objective = _losses(logits, batch, smoothing).sum()
            with torch.no_grad():
                likeliest = logits.argmax(1)
                loss = float(_losses(logits, batch, 0.0).sum())
            if not training:
                predicted = self._predicted(batch.rows, logits, labels)
        terms = {"loss": Term(objective, weights["loss"])}
        terms |= aux_terms(weights, aux)
        correct = float(likeliest.eq(labels).sum())
        metrics = {"loss": (loss, weights["loss"]), "accuracy": (correct, float(len(labels)))}
        return ObjectiveOutput(terms, metrics, predicted), None

    def _has_many_classes(self, batch: ExampleBatch) -> bool:
        """Return whether all logits with gradients would take much memory, and are linear in features."""
        columns, rows = batch.columns, len(batch.rows)
        is_plain = "other" not in columns and len(columns["source"]) == rows  # no mixture, a single view
        many = len(self.labels) >= MIN_CHUNKED_CLASSES
        return many and is_plain and isinstance(self.model.head, ClassificationHead)

    def _in_chunks(
        self, features: Float[Tensor, "B D"], labels: Int[Tensor, " B"], smoothing: float
    ) -> tuple[Tensor, float, Int[Tensor, " B"]]:
        """Return the sum of the training losses, that of the losses, and the likeliest labels.

        The logits are computed in chunks of rows.
        """
        projection, known = self.model.head.projection, labels.ge(0)
        weight, bias = (at_temperature(x, self.model) for x in (projection.weight, projection.bias))
        sums = linear_cross_entropy(features[known], weight, bias, labels[known], smoothing)
        return sums.label_smoothed, float(sums.nll), linear_argmax(features, weight, bias)

    @torch.no_grad()
    def _predicted(
        self, rows: Int[Tensor, " B"], logits: Float[Tensor, "B C"], labels: Int[Tensor, " B"]
    ) -> dict[int, PredictedLabels]:
        return predicted_labels(rows, logits, labels, [1] * len(labels))

    def per_example_loss(self, batch: ExampleBatch) -> Float[Tensor, " B"]:
        """Return the training loss of each row."""
        return _losses(self._logits(batch)[0], batch, self.label_smoothing)

    def log_probabilities(self, batch: ExampleBatch) -> Float[Tensor, " B"]:
        """Return the log-probability of each row's label, with gradients where they are on."""
        batch = batch.to(next(self.model.parameters()).device)
        logits = self._logits(batch)[0]
        return logits.log_softmax(1).gather(1, batch.columns["label"][:, None])[:, 0]

    def with_own_answer(self, batch: ExampleBatch) -> ExampleBatch:
        """Return the batch with the likeliest labels as labels."""
        label = self.class_logits(batch).argmax(1).to(batch.columns["source"].device)
        return replace(batch, columns={**batch.columns, "label": label})

    def class_logits(self, batch: ExampleBatch) -> Float[Tensor, "B C"]:
        """Return the logits of the classes. The model must be in evaluation mode."""
        with torch.inference_mode():
            return self._logits(batch.to(next(self.model.parameters()).device))[0]

    def class_labels(self, batch: ExampleBatch) -> Int[Tensor, " B"]:
        """Return the correct labels, negative if training does not have them."""
        return batch.columns["label"]

    def predict_batch(self, batch: ExampleBatch) -> Tensor:
        """Return the probability of each class (B, C). The model must be in evaluation mode."""
        return self.class_logits(batch).softmax(1)

    def _logits(self, batch: ExampleBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the logits at the model's temperature, and `aux`.

        If a source has several views (B * views), the logits are the logarithm of the mean probability over
        its views.
        """
        features, aux = self._features(batch)
        logits = at_least_float32(self.model.head.project(features))
        rows = len(batch.rows)
        views = len(logits) // max(1, rows)
        if views > 1:
            logits = logits.view(rows, views, -1).log_softmax(2).logsumexp(1) - math.log(views)
            aux = {name: sums.view(rows, views).mean(1) for name, sums in aux.items()}
        return at_temperature(logits, self.model), aux

    def _features(self, batch: ExampleBatch) -> tuple[Float[Tensor, "B D"], dict[str, Tensor]]:
        memory, aux = self.model.encode(batch.columns, batch.lengths)
        features, _ = self.model.head(memory)
        return features, aux

    def _project(self, features: Float[Tensor, "B D"]) -> Float[Tensor, "B C"]:
        """Return the logits at the model's temperature, without gradients."""
        with torch.no_grad():
            return at_temperature(at_least_float32(self.model.head.project(features)), self.model)


def _row_slices(count: int) -> list[slice]:
    """Return slices of at most `ROWS_AT_ONCE` of `count` rows."""
    return [slice(start, start + ROWS_AT_ONCE) for start in range(0, count, ROWS_AT_ONCE)]


def _losses(logits: Tensor, batch: ExampleBatch, label_smoothing: float) -> Tensor:
    """Return the loss of each row."""
    columns = batch.columns
    losses = F.cross_entropy(logits, columns["label"], reduction="none", label_smoothing=label_smoothing)
    if "other" not in columns:
        return losses
    rest = F.cross_entropy(logits, columns["other"], reduction="none", label_smoothing=label_smoothing)
    return torch.lerp(rest, losses, columns["share"])
