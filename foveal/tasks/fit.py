"""How well data fit a task, and why."""

from typing import NamedTuple

from foveal.data.files.sidecars import TEXT_SUFFIX
from foveal.data.open import OpenedData


class Fit(NamedTuple):
    """How well data fit a task. The highest score decides."""

    score: int
    """0 if the data do not fit."""
    reason: str = ""
    """A clause that says what was seen, such as "there are the columns text and label"."""


NO_FIT = Fit(0)


def fit_texts_beside(data: OpenedData) -> Fit:
    """Return how well files fit a task that writes the texts beside them.

    2 for texts alone; 1 if the files' folders, or the texts, may be labels.
    """
    if TEXT_SUFFIX not in data.train.sidecars:
        return NO_FIT
    may_be_labels = data.train.has_repeated_texts or data.train.listing.folders
    return Fit(1 if may_be_labels else 2, data.evidence.reason)
