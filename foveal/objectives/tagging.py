"""Tagging: a label for each word of a source."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.core.result import ObjectiveOutput, Term
from foveal.core.runtime import at_least_float32
from foveal.core.state import State
from foveal.data.core.batching import ExampleBatch
from foveal.models.encoder import EncoderWithHead
from foveal.objectives.aux_terms import aux_terms
from foveal.objectives.predicted_labels import at_temperature, predicted_labels
from foveal.objectives.stateless import StatelessObjective
from foveal.ops.padding import sequence_mask


class TaggingObjective(StatelessObjective):
    """`-log p(tag | source)` in nats for each word.

    Columns of a batch: `source` (tokens), `places` (for each word, the position of the token that is tagged),
    `target` (tags).
    """

    def __init__(self, model: EncoderWithHead, tags: tuple[str, ...], label_smoothing: float = 0.0):
        self.model, self.tags, self.label_smoothing = model, tags, label_smoothing
        self.aux_names = list(model.encoder.aux_names)

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        """Return the weight of each term, from the batch alone."""
        return {"loss": float(batch.tokens)} | dict.fromkeys(self.aux_names, float(len(batch.rows)))

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        batch = batch.to(next(self.model.parameters()).device)
        targets, weights = batch.columns["target"], self.weights(batch)
        scored = sequence_mask(batch.lengths["target"], targets.shape[1])
        features, aux = self._features(batch)
        logits, tags = self._project(features[scored]), targets[scored]
        smoothing = self.label_smoothing if self.model.training else 0.0
        terms = {
            "loss": Term(
                F.cross_entropy(logits, tags, reduction="sum", label_smoothing=smoothing), weights["loss"]
            )
        }
        terms |= aux_terms(weights, aux)
        nats = float(F.cross_entropy(logits.detach(), tags, reduction="sum"))
        correct = float(logits.detach().argmax(1).eq(tags).sum())
        metrics = {"loss": (nats, weights["loss"]), "accuracy": (correct, weights["loss"])}
        if self.model.training:
            return ObjectiveOutput(terms, metrics), None
        predicted = predicted_labels(batch.rows, logits, tags, batch.lengths["target"].tolist())
        return ObjectiveOutput(terms, metrics, predicted), None

    def log_probabilities(self, batch: ExampleBatch) -> Float[Tensor, " P"]:
        """Return the log-probability of each word's tag, row by row, with gradients where they are on."""
        batch = batch.to(next(self.model.parameters()).device)
        features, _ = self._features(batch)
        logits = self._project(features[sequence_mask(batch.lengths["places"], features.shape[1])])
        return logits.log_softmax(1).gather(1, self.class_labels(batch)[:, None])[:, 0]

    def with_own_answer(self, batch: ExampleBatch) -> ExampleBatch:
        """Return the batch with the likeliest tags as targets."""
        counts = batch.lengths["places"]
        mask = sequence_mask(counts, batch.columns["places"].shape[1])
        tags = self.class_logits(batch).argmax(1).to(counts.device)
        target = torch.zeros_like(batch.columns["places"]).masked_scatter(mask, tags)
        lengths = {**batch.lengths, "target": counts}
        return replace(batch, columns={**batch.columns, "target": target}, lengths=lengths)

    def class_logits(self, batch: ExampleBatch) -> Float[Tensor, "P C"]:
        """Return the logits of the tags of all P words of the batch, row by row. The model must be in
        evaluation mode."""
        batch = batch.to(next(self.model.parameters()).device)
        with torch.inference_mode():
            features, _ = self._features(batch)
            return self._project(features[sequence_mask(batch.lengths["places"], features.shape[1])])

    def class_labels(self, batch: ExampleBatch) -> Int[Tensor, " P"]:
        """Return the tags of all words of the batch, row by row."""
        targets = batch.columns["target"]
        return targets[sequence_mask(batch.lengths["target"], targets.shape[1])]

    def _project(self, features: Float[Tensor, "P D"]) -> Float[Tensor, "P C"]:
        """Return the logits at the model's temperature."""
        return at_temperature(at_least_float32(self.model.head.project(features)), self.model)

    def _features(self, batch: ExampleBatch) -> tuple[Tensor, dict[str, Tensor]]:
        memory, aux = self.model.encoder(batch.columns["source"], batch.lengths.get("source"))
        return self.model.head(memory, batch.columns["places"])[0], aux
