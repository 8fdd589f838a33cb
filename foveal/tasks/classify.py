"""Classification: one label for each source."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from foveal.core.result import Result, Term
from foveal.core.runtime import at_least_single
from foveal.core.state import State
from foveal.data.batching import ExampleBatch
from foveal.layers.moe import added
from foveal.models.encoder import Encoded
from foveal.tasks.apart import Apart


class ClassifyTask(Apart):
    """`-log p(label | source)` in nats a source. Columns of a batch: `source`, `label`; of mixed sources
    `other` and `share` (`data.augment.mixed`). A label below zero is none that training has: such a row has
    no loss, and is wrong.

    Of several members p is the mean of theirs (Lakshminarayanan et al. 2017, 2.4); what training makes small
    is the sum of what each loses by itself.
    """

    def __init__(self, model: Encoded, labels: tuple[str, ...], smoothing: float = 0.0):
        self.model, self.labels, self.smoothing = model, labels, smoothing
        self.aux_names = list(model.encoder.aux_names)

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        """The weight of each term, from the batch alone."""
        known = float(batch.columns["label"].ge(0).sum())
        return {"loss": known} | dict.fromkeys(self.aux_names, float(len(batch.rows)))

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[Result, State]:
        batch = batch.to(next(self.model.parameters()).device)
        labels, weights = batch.columns["label"], self.weights(batch)
        each, aux = self._each(batch)
        logits, smoothing = _together(each), self.smoothing
        if not self.model.training:
            each, smoothing = [logits], 0.0
        lost = torch.stack([_nats(one, batch, smoothing).sum() for one in each]).sum()
        terms = {"loss": Term(lost, weights["loss"])}
        terms |= {name: Term(sums.sum(), weights[name]) for name, sums in aux.items()}
        with torch.no_grad():
            loss, right = float(_nats(logits, batch, 0.0).sum()), float(logits.argmax(1).eq(labels).sum())
        return Result(terms, {"loss": (loss, weights["loss"]), "accuracy": (right, float(len(labels)))}), None

    def nats(self, batch: ExampleBatch) -> Float[Tensor, " B"]:
        """The loss of each row in training."""
        return _nats(_together(self._each(batch)[0]), batch, self.smoothing)

    def predict(self, batch: ExampleBatch) -> Tensor:
        """The probability of each class (B, C); the model is to be in evaluation mode."""
        with torch.inference_mode():
            each, _ = self._each(batch.to(next(self.model.parameters()).device))
            return _together(each).softmax(1)

    def _each(self, batch: ExampleBatch) -> tuple[list[Tensor], dict[str, Tensor]]:
        """Each member's logits (B, C); where a source has several views (B * views), the logarithm of their
        mean probability. Further terms of members are added up."""
        found: list[Tensor] = []
        sums: dict[str, Tensor] = {}
        for member in self.model.members:
            memory, aux = member.encode(batch.columns, batch.lengths)
            features, _ = member.head(memory)
            logits = at_least_single(member.head.project(features))
            views = len(logits) // len(batch.rows)
            found.append(_together(logits.view(-1, views, logits.shape[1]).unbind(1)))
            sums = added(sums, {name: total.view(-1, views).mean(1) for name, total in aux.items()})
        return found, sums


def _together(logits: Sequence[Float[Tensor, "B C"]]) -> Float[Tensor, "B C"]:
    """The logarithm of their mean probability; one of them as it is."""
    if len(logits) == 1:
        return logits[0]
    return torch.stack(list(logits)).log_softmax(2).logsumexp(0) - math.log(len(logits))


def _nats(logits: Tensor, batch: ExampleBatch, smoothing: float) -> Tensor:
    """Of each row."""
    columns = batch.columns
    found = F.cross_entropy(logits, columns["label"], reduction="none", label_smoothing=smoothing)
    if "other" not in columns:
        return found
    rest = F.cross_entropy(logits, columns["other"], reduction="none", label_smoothing=smoothing)
    return torch.lerp(rest, found, columns["share"])
