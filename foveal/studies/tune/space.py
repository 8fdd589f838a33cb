"""The settings that are searched, and their ranges."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from foveal.config import Config, suggest
from foveal.config.old_names import flatten
from foveal.config.sections import DECOUPLED_DECAY
from foveal.config.sections_by_path import setting_text
from foveal.core.errors import UserError
from foveal.tasks.read_settings import read_settings

Value = float | str
INITIALIZATIONS = ("default", "kaiming", "xavier")
REFINED = 3.0
"""A refined range reaches from a third of the best value to three times it, or that part of its width."""


@dataclass(frozen=True)
class Dimension:
    """A setting that is searched, or several that always have one value."""

    keys: tuple[str, ...]
    low: float = 0.0
    high: float = 0.0
    is_log: bool = False
    choices: tuple[str, ...] = ()
    """The values of a setting that is no number."""

    @property
    def name(self) -> str:
        return self.keys[0]

    def contains(self, value: Value) -> bool:
        """Return whether a value lies in the range."""
        return value in self.choices if isinstance(value, str) else self.low <= value <= self.high

    def around(self, best: Value) -> "Dimension":
        """Return the dimension with a narrower range around a value, which may lie outside."""
        if isinstance(best, str):
            return replace(self, choices=(best,))
        if self.is_log and best < self.low:
            return self
        if self.is_log:
            return replace(self, low=best / REFINED, high=best * REFINED)
        width = (self.high - self.low) / REFINED / 2
        best = min(max(best, self.low), self.high)
        return replace(self, low=max(self.low, best - width), high=min(self.high, best + width))

    def to_json(self) -> dict[str, Any]:
        """Return the settings and their range."""
        given = {"choices": [*self.choices]} if self.choices else {"from": self.low, "to": self.high}
        return {"settings": [*self.keys], **given}


def search_space(config: Config, best_lr: float, only: Sequence[str]) -> tuple[Dimension, ...]:
    """Return the dimensions for a config, whose losses fell fastest at `best_lr`; of these `only` some, if
    any are named.

    Raises: UserError: a named setting is not searched.
    """
    values, read = dict(flatten(config.model_dump())), read_settings(config)
    dropouts = tuple(sorted(key for key in read if key.endswith(".dropout") and values[key] is not None))
    dimensions = [Dimension(("optimizer.lr",), best_lr / 10, best_lr * math.sqrt(10), True)]
    if dropouts:
        dimensions.append(Dimension(dropouts, 0.0, 0.5))
    decay = (1e-3, 1.0) if config.optimizer.name in DECOUPLED_DECAY else (1e-6, 1e-2)
    dimensions.append(Dimension(("optimizer.weight_decay",), *decay, True))
    if config.model.initialization not in INITIALIZATIONS:
        dimensions.append(Dimension(("model.initialization",), choices=INITIALIZATIONS))
    if not only:
        return tuple(dimensions)
    known = {key: dimension for dimension in dimensions for key in dimension.keys}
    for key in only:
        if key not in known:
            raise UserError(f"--search {key}: not among the searched settings{suggest(key, known)}")
    return tuple(dict.fromkeys(known[key] for key in only))


def settings_of(dimensions: Sequence[Dimension], params: Mapping[str, Value]) -> dict[str, str]:
    """Return the settings for a value of each dimension, by its name."""
    return {key: value_text(params[each.name]) for each in dimensions for key in each.keys}


def value_text(value: Any) -> str:
    """Return the value of a setting as users write it; of a number that was drawn, three digits."""
    return f"{value:.3g}" if isinstance(value, float) else setting_text(value)


def number_or_text(value: Any) -> Any:
    """Return a setting's value as a number, if it is one."""
    try:
        return float(value)
    except ValueError:
        return value
