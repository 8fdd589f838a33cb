"""How much of a trained encoder to train on: the usual advice, by two measured questions.

    |             | alike           | unlike                              |
    | little data | the head alone  | hard: the head alone, or more data  |
    | much data   | the last blocks | all layers                          |

The table is the usual summary of what carries over (Yosinski et al. 2014). Both words are measured: much is
`MUCH` images a class; alike is that the nearest neighbours by the features as they are make at most half of
the errors that those by pixels make.
"""

from typing import Literal, NamedTuple

MUCH = 1000.0
"""Images a class. A convention: there is no such border in the data."""
Way = Literal["head", "last-block", "all", "scratch"]


class Advice(NamedTuple):
    much: bool
    alike: bool
    way: Way
    words: str


ADVICE: dict[tuple[bool, bool], tuple[Way, str]] = {
    (False, True): ("head", "train the head alone"),
    (True, True): ("last-block", "train the head and the last blocks"),
    (False, False): ("head", "the hard case: train the head alone, and find more images"),
    (True, False): ("all", "train all layers"),
}
"""By (much, alike)."""


def advise(per_class: float, features: float, pixels: float) -> Advice:
    """From the training images a class, and the shares of held-out images whose nearest neighbours have the
    right label."""
    much, alike = per_class >= MUCH, 1 - features <= (1 - pixels) / 2
    return Advice(much, alike, *ADVICE[much, alike])


class Measured(NamedTuple):
    """An accuracy with its 95 % interval."""

    accuracy: float
    low: float
    high: float


def verdict(advised: Way, found: dict[Way, Measured]) -> str:
    """Whether the measured ways bear the advice out."""
    best = max(found, key=lambda way: found[way].accuracy)
    if best == advised:
        return f"{best} is the best here too, as advised"
    told = f"{best} is better here than {advised}, which was advised"
    apart = found[best].low > found[advised].high
    return f"{told}; the intervals {'lie apart' if apart else 'overlap'}"
