"""A baseline fitted in seconds, beside which the score of a training is shown."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Baseline:
    """The score of a simple method on the held-out rows of a training."""

    name: str
    """What the method is, such as a linear classifier of summary statistics."""
    metric: str
    value: float

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, self.metric: self.value}
