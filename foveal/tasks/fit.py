"""How well data fit a task, and why."""

from typing import NamedTuple


class Fit(NamedTuple):
    """How well data fit a task. The highest score decides."""

    score: int
    """0 if the data do not fit."""
    reason: str = ""
    """A clause that says what was seen, such as "there are the columns text and label"."""


NO_FIT = Fit(0)
