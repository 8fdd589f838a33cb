"""The objective of glimpses: cross-entropy for the label, and REINFORCE for the locations."""

import torch
from torch import Tensor
from torch.nn import functional as F

from foveal.core.result import ObjectiveOutput, Term
from foveal.core.runtime import at_least_float32
from foveal.core.state import State
from foveal.data.core.batching import ExampleBatch
from foveal.objectives.classification import predicted_ids_by_row
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
        logits, baselines = at_least_float32(path.logits[:, -1]), at_least_float32(path.baselines)
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
        return ObjectiveOutput(
            terms, metrics, {} if self.model.training else predicted_ids_by_row(batch, likeliest)
        ), None

    def rollout(self, batch: ExampleBatch) -> GlimpseOutput:
        """Run the model on the batch: return the locations of its glimpses, and its logits."""
        path: GlimpseOutput = self.model(batch.columns["source"].to(next(self.model.parameters()).device))
        return path

    def predict_batch(self, batch: ExampleBatch) -> Tensor:
        """Return the probability of each class (B, C). The model must be in evaluation mode."""
        with torch.inference_mode():
            return at_least_float32(self.rollout(batch).logits[:, -1]).softmax(1)
