"""The objective of glimpses: cross-entropy for the label, and REINFORCE for the locations."""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from foveal.core.result import ObjectiveOutput, Term
from foveal.core.runtime import at_least_float32
from foveal.core.state import State
from foveal.data.core.batching import ExampleBatch
from foveal.objectives.predicted_labels import at_temperature, predicted_labels
from foveal.objectives.stateless import StatelessObjective
from foveal.tasks.glimpses.model import GlimpseOutput, RecurrentAttentionModel


class GlimpsesObjective(StatelessObjective):
    """The hybrid loss of Mnih et al. 2014, section 3.2, for the columns `source` and `label` of a batch.

    `loss` is `-log p(label | path)` after the last glimpse, in nats per image. `path` is REINFORCE's `-sum_t
    (R - b_t) log p(l_t)` (Williams 1992). The reward R is 1 for a correct label, else 0. `baseline` is the
    mean over t of `(R - b_t)^2`.
    """

    def __init__(self, model: RecurrentAttentionModel, labels: tuple[str, ...], reinforce: float):
        self.model, self.labels, self.reinforce = model, labels, reinforce

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        return dict.fromkeys(("loss", "path", "baseline"), float(len(batch.rows)))

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        path, labels = self.rollout(batch), batch.columns["label"]
        labels = labels.to(path.locations.device)
        logits, baselines = self._last_logits(path), at_least_float32(path.baselines)
        likeliest = logits.detach().argmax(1)
        reward = (likeliest == labels).to(logits.dtype)
        advantage = reward[:, None] - baselines
        sums = {
            "loss": F.cross_entropy(logits, labels, reduction="sum"),
            "path": -(advantage.detach() * path.location_log_probs).sum(),
            "baseline": advantage.square().sum() / max(1, advantage.shape[1]),
        }
        rows = float(len(labels))
        metrics = {"loss": (float(sums["loss"].detach()), rows), "accuracy": (float(reward.sum()), rows)}
        coefficients = {"loss": 1.0, "path": self.reinforce, "baseline": 1.0}
        terms = {name: Term(total, rows, coefficients[name]) for name, total in sums.items()}
        if self.model.training:
            return ObjectiveOutput(terms, metrics), None
        predicted = predicted_labels(batch.rows, logits, labels, [1] * len(labels))
        return ObjectiveOutput(terms, metrics, predicted), None

    def rollout(self, batch: ExampleBatch) -> GlimpseOutput:
        """Run the model on the batch: return the locations of its glimpses, and its logits."""
        path: GlimpseOutput = self.model(batch.columns["source"].to(next(self.model.parameters()).device))
        return path

    def _last_logits(self, path: GlimpseOutput) -> Float[Tensor, "B C"]:
        """Return the logits after the last glimpse, at the model's temperature."""
        return at_temperature(at_least_float32(path.logits[:, -1]), self.model)

    def class_logits(self, batch: ExampleBatch) -> Float[Tensor, "B C"]:
        """Return the logits of the classes. The model must be in evaluation mode."""
        with torch.inference_mode():
            return self._last_logits(self.rollout(batch))

    def class_labels(self, batch: ExampleBatch) -> Int[Tensor, " B"]:
        """Return the correct labels, negative if training does not have them."""
        return batch.columns["label"]

    def predict_batch(self, batch: ExampleBatch) -> Tensor:
        """Return the probability of each class (B, C). The model must be in evaluation mode."""
        return self.class_logits(batch).softmax(1)
