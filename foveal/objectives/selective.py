"""Classification that learns the hard part of what it sees, as a small model finds it."""

from dataclasses import replace

import torch

from foveal.core.result import ObjectiveOutput, Term
from foveal.core.state import State
from foveal.data.core.batching import ExampleBatch
from foveal.objectives.classification import ClassificationObjective
from foveal.objectives.selective_model import ModelWithProxy


class SelectiveObjective(ClassificationObjective):
    """Of each batch to train on the `select_fraction` of which the model's proxy has the highest losses; the
    proxy learns the same ones ("selection via proxy", Coleman et al. 2020; batch by batch in Jordan's
    airbench96).

    What is easy soon teaches a large model nothing more, and a proxy of a twentieth of its cost finds it:
    with the half of each batch a training sees twice as many images in its time. A step's figures are of the
    hardest ones, and so worse than those of all. Evaluation is that of `ClassificationObjective`.
    """

    model: ModelWithProxy

    def __init__(
        self, model: ModelWithProxy, labels: tuple[str, ...], label_smoothing: float, select_fraction: float
    ):
        super().__init__(model, labels, label_smoothing)
        self.learner, self.proxy = (
            ClassificationObjective(one, labels, label_smoothing) for one in (model, model.proxy)
        )
        self.select_fraction = select_fraction

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        """As of `ClassificationObjective`; in training, where every label is known, of those that are
        learned."""
        if not self.model.training:
            return super().weights(batch)
        return dict.fromkeys(("loss", "proxy", *self.aux_names), float(self._count(batch)))

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[ObjectiveOutput, State]:
        if not self.model.training:
            return super().__call__(batch, carry)
        batch = batch.to(next(self.model.parameters()).device)
        with torch.no_grad():  # a second time for what is learned costs less than a way back for all
            hardest = self.proxy.per_example_loss(batch).topk(self._count(batch)).indices.sort().values
        chosen = batch.take(hardest)
        result, carry = self.learner(chosen, carry)
        its_own = Term(self.proxy.per_example_loss(chosen).sum(), float(len(hardest)))
        return replace(result, terms=result.terms | {"proxy": its_own}), carry

    def _count(self, batch: ExampleBatch) -> int:
        return max(1, round(self.select_fraction * len(batch.rows)))
