"""Classification: one label for each source."""

import torch
from torch import Tensor
from torch.nn import functional as F

from foveal.core.result import Result, Term
from foveal.core.runtime import at_least_single
from foveal.core.state import State
from foveal.data.batching import ExampleBatch
from foveal.models.encoder import Encoded


class ClassifyTask:
    """`-log p(label | source)` in nats a source. Columns of a batch: `source`, `label`."""

    def __init__(self, model: Encoded, labels: tuple[str, ...], smoothing: float = 0.0):
        self.model, self.labels, self.smoothing = model, labels, smoothing
        self.aux_names = list(model.encoder.aux_names)

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        """The weight of each term, from the batch alone."""
        return dict.fromkeys(("loss", *self.aux_names), float(len(batch.rows)))

    def start(self, batch: ExampleBatch) -> State:
        """Examples do not know each other: nothing is carried."""
        return None

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[Result, State]:
        batch = batch.to(next(self.model.parameters()).device)
        labels, weights = batch.columns["label"], self.weights(batch)
        logits, aux = self._logits(batch)
        smoothing = self.smoothing if self.model.training else 0.0
        smoothed = F.cross_entropy(logits, labels, reduction="sum", label_smoothing=smoothing)
        terms = {"loss": Term(smoothed, weights["loss"])}
        terms |= {name: Term(sums.sum(), weights[name]) for name, sums in aux.items()}
        nats = float(F.cross_entropy(logits.detach(), labels, reduction="sum"))
        right = float(logits.detach().argmax(1).eq(labels).sum())
        rows = float(len(labels))
        return Result(terms, {"loss": (nats, rows), "accuracy": (right, rows)}), None

    def predict(self, batch: ExampleBatch) -> Tensor:
        """The probability of each class (B, C); the model is to be in evaluation mode."""
        with torch.inference_mode():
            return self._logits(batch.to(next(self.model.parameters()).device))[0].softmax(1)

    def preview(self, step: int) -> str | None:
        """A number says it better: the accuracy is evaluated."""
        return None

    def _logits(self, batch: ExampleBatch) -> tuple[Tensor, dict[str, Tensor]]:
        memory, aux = self.model.encoder(batch.columns["source"], batch.lengths.get("source"))
        features, _ = self.model.head(memory)
        return at_least_single(self.model.head.project(features)), aux
