"""What evaluation and prediction take from the logits of classes."""

import math
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.result import PredictedLabels
from foveal.data.core.batching import ExampleBatch


@runtime_checkable
class ClassObjective(Protocol):
    """The objective of a model with a logit for each class of each place."""

    def class_logits(self, batch: ExampleBatch) -> Tensor:
        """Return the logits (P, C) of the P places of a batch, row by row."""

    def class_labels(self, batch: ExampleBatch) -> Tensor:
        """Return the correct labels (P,), negative if training does not have them."""


def at_temperature(logits: Tensor, model: nn.Module) -> Tensor:
    """Return the logits divided by the temperature of a calibrated model (Guo et al. 2017).

    `tasks.calibration` sets the temperature. A model in training has none.
    """
    temperature: float = getattr(model, "temperature", 1.0)
    return logits if temperature == 1 else logits / temperature


def predicted_labels(
    rows: Int[Tensor, " B"], logits: Float[Tensor, "P C"], labels: Int[Tensor, " P"], counts: list[int]
) -> dict[int, PredictedLabels]:
    """Return the likeliest label of each place by row, with its probability, and the mean loss of the row.

    Row i has the next `counts[i]` of the P places. A negative label does not occur in training, so that its
    loss is infinite.
    """
    log_probs = logits.detach().log_softmax(1)
    ids = logits.argmax(1, keepdim=True)
    probabilities = log_probs.gather(1, ids).exp().squeeze(1).tolist()
    losses = -log_probs.gather(1, labels.clamp(min=0)[:, None]).squeeze(1)
    places = ids.squeeze(1).tolist(), probabilities, losses.masked_fill(labels < 0, math.inf).tolist()
    predicted, start = dict[int, PredictedLabels](), 0
    for row, count in zip(rows.tolist(), counts, strict=True):
        own_ids, own_probabilities, own_losses = (column[start : start + count] for column in places)
        predicted[row] = PredictedLabels(own_ids, own_probabilities, sum(own_losses) / max(1, count))
        start += count
    return predicted
