"""Advice on how much of a trained encoder to fine-tune, by two measured facts.

    |             | alike           | unlike                              |
    | little data | the head alone  | hard: the head alone, or more data  |
    | much data   | the last blocks | all layers                          |

The table is the usual summary of what transfers (Yosinski et al. 2014). Both facts are measured. Much data is
`MANY_IMAGES_PER_CLASS` images in each class. Alike means that nearest neighbors by the encoder's features
make at most half of the errors of nearest neighbors by pixels.
"""

from typing import Literal, NamedTuple

MANY_IMAGES_PER_CLASS = 1000.0
"""Images in each class. The number is a convention: the data show no such border."""
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
"""Advice by (much data, alike)."""


def advise(images_per_class: float, features: float, pixels: float) -> Advice:
    """Return the advice.

    `images_per_class` counts training images. `features` and `pixels` are the fractions of held-out images
    whose nearest neighbors have the correct label.
    """
    much, alike = images_per_class >= MANY_IMAGES_PER_CLASS, 1 - features <= (1 - pixels) / 2
    return Advice(much, alike, *ADVICE[much, alike])


class MeasuredAccuracy(NamedTuple):
    """An accuracy with its 95 % interval."""

    accuracy: float
    low: float
    high: float


def verdict(advised: Strategy, measured: dict[Strategy, MeasuredAccuracy]) -> str:
    """Return a sentence that says whether the measured strategies confirm the advice."""
    best = max(measured, key=lambda strategy: measured[strategy].accuracy)
    if best == advised:
        return f"{best} is the best here too, as advised"
    apart = measured[best].low > measured[advised].high
    return (
        f"{best} is better here than {advised}, which was advised; "
        f"the intervals {'lie apart' if apart else 'overlap'}"
    )
