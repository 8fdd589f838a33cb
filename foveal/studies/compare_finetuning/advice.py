"""The usual advice on how much of a trained encoder to fine-tune, from two measurements.

    |             | similar data    | different data                          |
    | few images  | the head alone  | difficult: the head alone, more images  |
    | many images | the last blocks | all layers                              |

The table is the usual summary of transfer learning (Yosinski et al. 2014). Many images are
`MANY_IMAGES_PER_CLASS` or more per class. Data are similar if classification by nearest neighbors in feature
space, before fine-tuning, makes at most half of the errors of classification by nearest neighbors in pixel
space.
"""

from typing import Literal, NamedTuple

MANY_IMAGES_PER_CLASS = 1000.0
"""A convention: nothing changes suddenly at this number."""
Strategy = Literal["head", "last-block", "all", "scratch"]


class Advice(NamedTuple):
    """The answers to the two questions, the recommended strategy, and the strategy in words."""

    many_images: bool
    features_transfer: bool
    strategy: Strategy
    text: str


ADVICE: dict[tuple[bool, bool], tuple[Strategy, str]] = {
    (False, True): ("head", "train the head alone"),
    (True, True): ("last-block", "train the head and the last blocks"),
    (False, False): ("head", "the difficult case: train the head alone, and collect more images"),
    (True, False): ("all", "train all layers"),
}
"""By whether there are many images, and whether features transfer."""


def advise(images_per_class: float, features: float, pixels: float) -> Advice:
    """Return the advice for a number of training images per class.

    `features` and `pixels` are the accuracies of nearest neighbors on held-out images.
    """
    many, transfer = images_per_class >= MANY_IMAGES_PER_CLASS, 1 - features <= (1 - pixels) / 2
    return Advice(many, transfer, *ADVICE[many, transfer])


class MeasuredAccuracy(NamedTuple):
    """An accuracy with its 95 % interval."""

    accuracy: float
    low: float
    high: float


def verdict(advised: Strategy, measured: dict[Strategy, MeasuredAccuracy]) -> str:
    """Return in words whether the measurements confirm the advice."""
    best = max(measured, key=lambda strategy: measured[strategy].accuracy)
    ties = [strategy for strategy in measured if measured[strategy].accuracy == measured[best].accuracy]
    if len(ties) > 1:
        among = "one of them was advised" if advised in ties else f"{advised}, which was advised, is worse"
        return f"{', '.join(ties[:-1])} and {ties[-1]} are tied here; {among}"
    if best == advised:
        return f"{best} is the best here, as advised"
    intervals = "do not overlap" if measured[best].low > measured[advised].high else "overlap"
    return f"{best} is better here than {advised}, which was advised; the intervals {intervals}"
