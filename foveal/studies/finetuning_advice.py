"""How much of a trained encoder to train on: the usual advice, by two measured questions.

    |             | alike           | unlike                              |
    | little data | the head alone  | hard: the head alone, or more data  |
    | much data   | the last blocks | all layers                          |

The table is the usual summary of what carries over (Yosinski et al. 2014). Both words are measured: much is
`MANY_IMAGES_PER_CLASS` images a class; alike is that the nearest neighbours by the features as they are make
at most half of the errors that those by pixels make.
"""

from typing import Literal, NamedTuple

MANY_IMAGES_PER_CLASS = 1000.0
"""Images a class. A convention: there is no such border in the data."""
Strategy = Literal["head", "last-block", "all", "scratch"]


class Advice(NamedTuple):
    many_images: bool
    features_transfer: bool
    strategy: Strategy
    text: str


ADVICE: dict[tuple[bool, bool], tuple[Strategy, str]] = {
    (False, True): ("head", "train the head alone"),
    (True, True): ("last-block", "train the head and the last blocks"),
    (False, False): ("head", "the hard case: train the head alone, and find more images"),
    (True, False): ("all", "train all layers"),
}
"""By (much, alike)."""


def advise(images_per_class: float, features: float, pixels: float) -> Advice:
    """From the training images a class, and the shares of held-out images whose nearest neighbours have the
    right label."""
    much, alike = images_per_class >= MANY_IMAGES_PER_CLASS, 1 - features <= (1 - pixels) / 2
    return Advice(much, alike, *ADVICE[much, alike])


class MeasuredAccuracy(NamedTuple):
    """An accuracy with its 95 % interval."""

    accuracy: float
    low: float
    high: float


def verdict(advised: Strategy, measured: dict[Strategy, MeasuredAccuracy]) -> str:
    """Whether the measured ways bear the advice out."""
    best = max(measured, key=lambda strategy: measured[strategy].accuracy)
    if best == advised:
        return f"{best} is the best here too, as advised"
    told = f"{best} is better here than {advised}, which was advised"
    apart = measured[best].low > measured[advised].high
    return f"{told}; the intervals {'lie apart' if apart else 'overlap'}"
