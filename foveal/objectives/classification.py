"""Classification: one label for each source."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.core.result import Result, Term
from foveal.core.runtime import at_least_single
from foveal.core.state import State
from foveal.data.core.batching import ExampleBatch
from foveal.models.encoder import Encoded
from foveal.objectives.stateless import Apart


class ClassifyTask(Apart):
    """`-log p(label | source)` in nats a source. Columns of a batch: `source`, `label`; of mixed sources
    `other` and `share` (`data.augment.mixed`). A label below zero is none that training has: such a row has
    no loss, and is wrong."""

    def __init__(self, model: Encoded, labels: tuple[str, ...], smoothing: float = 0.0):
        self.model, self.labels, self.smoothing = model, labels, smoothing
        self.aux_names = list(model.encoder.aux_names)

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        """The weight of each term, from the batch alone."""
        known = float(batch.columns["label"].ge(0).sum())
        return {"loss": known} | dict.fromkeys(self.aux_names, float(len(batch.rows)))

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[Result, State]:
        batch = batch.to(next(self.model.parameters()).device)
        labels, weights, training = batch.columns["label"], self.weights(batch), self.model.training
        logits, aux = self._logits(batch)
        smoothing = self.smoothing if training else 0.0
        terms = {"loss": Term(_nats(logits, batch, smoothing).sum(), weights["loss"])}
        terms |= {name: Term(sums.sum(), weights[name]) for name, sums in aux.items()}
        with torch.no_grad():
            likeliest = logits.argmax(1)
            loss, right = float(_nats(logits, batch, 0.0).sum()), float(likeliest.eq(labels).sum())
        metrics = {"loss": (loss, weights["loss"]), "accuracy": (right, float(len(labels)))}
        return Result(terms, metrics, {} if training else one_each(batch, likeliest)), None

    def nats(self, batch: ExampleBatch) -> Float[Tensor, " B"]:
        """The loss of each row in training."""
        return _nats(self._logits(batch)[0], batch, self.smoothing)

    def predict(self, batch: ExampleBatch) -> Tensor:
        """The probability of each class (B, C); the model is to be in evaluation mode."""
        with torch.inference_mode():
            return self._logits(batch.to(next(self.model.parameters()).device))[0].softmax(1)

    def _logits(self, batch: ExampleBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Where a source has several views (B * views), the logarithm of their mean probability."""
        memory, aux = self.model.encode(batch.columns, batch.lengths)
        features, _ = self.model.head(memory)
        logits = at_least_single(self.model.head.project(features))
        rows = len(batch.rows)
        views = len(logits) // rows
        if views > 1:
            logits = logits.view(rows, views, -1).log_softmax(2).logsumexp(1) - math.log(views)
            aux = {name: sums.view(rows, views).mean(1) for name, sums in aux.items()}
        return logits, aux


def _nats(logits: Tensor, batch: ExampleBatch, smoothing: float) -> Tensor:
    """Of each row."""
    columns = batch.columns
    found = F.cross_entropy(logits, columns["label"], reduction="none", label_smoothing=smoothing)
    if "other" not in columns:
        return found
    rest = F.cross_entropy(logits, columns["other"], reduction="none", label_smoothing=smoothing)
    return torch.lerp(rest, found, columns["share"])


def one_each(batch: ExampleBatch, numbers: Int[Tensor, " B"]) -> dict[int, list[int]]:
    """By row, the one label that is chosen."""
    return dict(zip(batch.rows.tolist(), numbers[:, None].tolist(), strict=True))
