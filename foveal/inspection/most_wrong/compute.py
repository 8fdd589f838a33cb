"""The rows whose wrong labels are most probable."""

from collections.abc import Sequence
from typing import NamedTuple


class WrongRow(NamedTuple):
    """A row with a wrong label, at a place of the row where each place has its own label."""

    row: int
    place: int
    reference: str
    prediction: str
    probability: float
    """The probability of the prediction."""


class Predictions(NamedTuple):
    """The labels of a row, and their probabilities."""

    labels: Sequence[str]
    probabilities: Sequence[float]


def wrong_rows(references: Sequence[Sequence[str]], predictions: Sequence[Predictions]) -> list[WrongRow]:
    """Return the wrong label with the highest probability of each row that has one, the highest first.

    Equally probable rows stay in their order.
    """
    wrong = []
    for row, (reference, predicted) in enumerate(zip(references, predictions, strict=True)):
        places = zip(reference, predicted.labels, predicted.probabilities, strict=True)
        own = [
            WrongRow(row, place, right, label, probability)
            for place, (right, label, probability) in enumerate(places)
            if label != right
        ]
        wrong += [max(own, key=lambda one: one.probability)] if own else []
    return sorted(wrong, key=lambda one: -one.probability)
