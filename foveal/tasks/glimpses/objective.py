"""Classification by glimpses: the label teaches the answer, and the correctness of the answer where to
look."""

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
    """The hybrid loss of Mnih et al. 2014, section 3.2, with columns `source` and `label` of a batch.

    `loss` is `-log p(label | path)` after the last glimpse, in nats for each image. `path` is REINFORCE's
    `-sum_t (R - b_t) log p(l_t)` (Williams 1992), with the reward R = 1 for a correct answer and 0 otherwise.
    `baseline` is the mean over t of `(R - b_t)^2`.
    """

    def __init__(self, model: RecurrentAttentionModel, labels: tuple[str, ...], reinforce: float):
        self.model, self.labels, self.reinforce = model, labels, reinforce

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        return dict.fromkeys(("loss", "path", "baseline"), float(len(batch.rows)))

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        path, labels = self.rollout(batch), batch.columns["label"]
        labels = labels.to(path.locations.device)
        logits, expected = at_least_float32(path.logits[:, -1]), at_least_float32(path.baselines)
        predicted = logits.detach().argmax(1)
        reward = (predicted == labels).to(logits.dtype)
        advantage = reward[:, None] - expected
        terms = {
            "loss": F.cross_entropy(logits, labels, reduction="sum"),
            "path": -(advantage.detach() * path.location_log_probs).sum(),
            "baseline": advantage.square().sum() / max(1, advantage.shape[1]),
        }
        rows = float(len(labels))
        metrics = {"loss": (float(terms["loss"].detach()), rows), "accuracy": (float(reward.sum()), rows)}
        coefficients = {"loss": 1.0, "path": self.reinforce, "baseline": 1.0}
        weighted = {name: Term(sums, rows, coefficients[name]) for name, sums in terms.items()}
        return ObjectiveOutput(
            weighted, metrics, {} if self.model.training else predicted_ids_by_row(batch, predicted)
        ), None

    def rollout(self, batch: ExampleBatch) -> GlimpseOutput:
        """Return the locations that the model looks at in each image, and its logits."""
        path: GlimpseOutput = self.model(batch.columns["source"].to(next(self.model.parameters()).device))
        return path

    def predict_batch(self, batch: ExampleBatch) -> Tensor:
        """Return the probability of each class (B, C). The model must be in evaluation mode."""
        with torch.inference_mode():
            return at_least_float32(self.rollout(batch).logits[:, -1]).softmax(1)
