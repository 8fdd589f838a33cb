"""Classification: one label for each source."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
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

    Of several members p is the mean of theirs (Lakshminarayanan et al. 2017, 2.4). In training each learns
    from rows of its own, every M-th of a batch, as it would alone: from the same ones they would become too
    much alike. The loss of a row is then its member's.
    """

    def __init__(self, model: Encoded, labels: tuple[str, ...], smoothing: float = 0.0):
        self.model, self.labels, self.smoothing = model, labels, smoothing
        self.aux_names = list(model.encoder.aux_names)

    def weights(self, batch: ExampleBatch) -> dict[str, float]:
        """The weight of each term, from the batch alone: of a member's share of it, in training."""
        known, shares = _known(batch), len(self.model.members) if self.model.training else 1
        return {"loss": known / shares} | dict.fromkeys(self.aux_names, len(batch.rows) / shares)

    def __call__(self, batch: ExampleBatch, carry: State) -> tuple[Result, State]:
        batch = batch.to(next(self.model.parameters()).device)
        weights, training = self.weights(batch), self.model.training
        if training and len(self.model.members) > 1:
            batch, logits, aux = self._apart(batch)
        else:
            logits, aux = self._logits(batch)
        terms = {
            "loss": Term(_nats(logits, batch, self.smoothing if training else 0.0).sum(), weights["loss"])
        }
        terms |= {name: Term(sums.sum(), weights[name]) for name, sums in aux.items()}
        labels = batch.columns["label"]
        with torch.no_grad():
            likeliest = logits.argmax(1)
            loss, right = float(_nats(logits, batch, 0.0).sum()), float(likeliest.eq(labels).sum())
        metrics = {"loss": (loss, _known(batch)), "accuracy": (right, float(len(labels)))}
        return Result(terms, metrics, {} if training else one_each(batch, likeliest)), None

    def nats(self, batch: ExampleBatch) -> Float[Tensor, " B"]:
        """The loss of each row in training."""
        return _nats(self._logits(batch)[0], batch, self.smoothing)

    def predict(self, batch: ExampleBatch) -> Tensor:
        """The probability of each class (B, C); the model is to be in evaluation mode."""
        with torch.inference_mode():
            return self._logits(batch.to(next(self.model.parameters()).device))[0].softmax(1)

    def _apart(self, batch: ExampleBatch) -> tuple[ExampleBatch, Tensor, dict[str, Tensor]]:
        """The batch in the order of the members whose rows they are, and what each makes of its own."""
        members = self.model.members
        shares = torch.arange(len(batch.rows))
        parts = [shares[place :: len(members)] for place in range(len(members))]
        pairs = [(member, part) for member, part in zip(members, parts, strict=True) if len(part)]
        found = [self._of(member, batch.take(part)) for member, part in pairs]
        logits = torch.cat([one for one, _ in found])
        aux = {name: torch.cat([sums[name] for _, sums in found]) for name in self.aux_names}
        return batch.take(torch.cat(parts)), logits, aux

    def _logits(self, batch: ExampleBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """Those of all members together; their further terms are added up."""
        logits, sums = [], dict[str, Tensor]()
        for member in self.model.members:
            own, aux = self._of(member, batch)
            logits.append(own)
            sums = added(sums, aux)
        return _together(logits), sums

    def _of(self, member: Encoded, batch: ExampleBatch) -> tuple[Tensor, dict[str, Tensor]]:
        """A member's logits (B, C); where a source has several views (B * views), the logarithm of their mean
        probability."""
        memory, aux = member.encode(batch.columns, batch.lengths)
        features, _ = member.head(memory)
        logits = at_least_single(member.head.project(features))
        views = len(logits) // len(batch.rows)
        seen = logits.view(-1, views, logits.shape[1]).unbind(1)
        return _together(seen), {name: sums.view(-1, views).mean(1) for name, sums in aux.items()}


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


def _known(batch: ExampleBatch) -> float:
    """How many rows have a label that training has."""
    return float(batch.columns["label"].ge(0).sum())


def one_each(batch: ExampleBatch, numbers: Int[Tensor, " B"]) -> dict[int, list[int]]:
    """By row, the one label that is chosen."""
    return dict(zip(batch.rows.tolist(), numbers[:, None].tolist(), strict=True))
