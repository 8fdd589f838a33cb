"""What a rule says about a training."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """A problem of a training, with the numbers that speak for it."""

    name: str
    step: int
    """The step from which on the log shows the problem."""
    evidence: str
    """The numbers, in a sentence."""
    refuted_by: str
    """What would speak against the finding."""
    advice: str
    """What to try."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields."""
        return vars(self).copy()
