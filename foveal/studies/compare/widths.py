"""Widths of models that make them equal in size."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from foveal.config import Config
from foveal.config.values import MAX_SIZE
from foveal.core.errors import UserError
from foveal.studies.compare.candidates import MISFITS, Candidate, shape_of
from foveal.tasks.config import from_tables
from foveal.tasks.read_settings import read_settings

TOLERANCE = 0.02
"""The largest difference between models that count as equal."""
STACKS = ("model", "model.encoder")
"""The sections whose width and expansion are solved for, in proportion to each other."""
FAST_MULTIPLE = 8
"""Widths that this number divides are preferred: kernels are written for them."""
EXPANSION_RANGE, BISECTIONS = (0.75, 1.35), 16
"""The factors on the expansion between which the rest is sought that widths leave, and halvings of them."""


@dataclass(frozen=True)
class Size:
    """What is to be equal: a number that grows with a model's width."""

    unit: str
    """The name of what is counted, such as `parameters`."""
    option: str
    """The option that would ask for another number; empty if there is none."""
    measure: Callable[[Config], int]


def count_parameters(config: Config, processor: Any) -> int:
    """Return the number of parameters of a model, without making its numbers."""
    return sum(weight.numel() for weight in shape_of(config, processor).model.parameters())


def solve_width(candidate: Candidate, target: int, size: Size, processor: Any) -> Candidate:
    """Return the model with the width whose size is nearest to `target`.

    Some mixers have wide steps between their widths. Then the expansion of the feed-forward layers makes the
    rest, if there are any.

    Raises: UserError: no width comes within the tolerance; the error has the nearest size.
    """
    own = size.measure(candidate.config)
    if is_near(own, target):
        return candidate
    family = _Family(candidate.config, processor)
    best, count = candidate.config, own
    for config in family.near(target, size.measure):
        reached = size.measure(config)
        if abs(reached - target) < abs(count - target):
            best, count = config, reached
        if is_near(count, target):
            return replace(candidate, config=best)
    ask = f"ask for {size.option} {count}, " if size.option else ""
    raise UserError(
        f"{candidate.name}: can't be matched to {target:,} {size.unit}: the nearest that is possible is "
        f"{count:,} ({family.width_text(best)}); {ask}take another model, or --match none"
    )


def is_near(count: int, target: int) -> bool:
    """Return whether two sizes count as equal."""
    return abs(count - target) <= TOLERANCE * target


class _Family:
    """The models that differ from one in width and expansion only."""

    def __init__(self, config: Config, processor: Any):
        read = read_settings(config)
        self._config, self._processor = config, processor
        self._widths = [path for path in STACKS if f"{path}.width" in read]
        self._expansions = [path for path in STACKS if f"{path}.expansion" in read]
        self._own = int(_section(config, self._widths[0])["width"]) if self._widths else 0
        self.with_width = cache(self._with_width)

    def width_text(self, config: Config) -> str:
        """Return the setting of the width in words."""
        if not self._widths:
            return "it has no width to change"
        path = self._widths[0]
        return f"with {path}.width={_section(config, path)['width']}"

    def near(self, target: int, measure: Callable[[Config], int]) -> Iterator[Config]:
        """Yield models around the target: of widths with fast kernels, of any width, of other expansions."""
        if not self._widths:
            return
        units = self._units()
        around = [config for unit in units for config in self._around(unit, target, measure)]
        yield from around
        if self._expansions and around:
            nearest = min(around, key=lambda config: abs(measure(config) - target))
            yield from self._expanded(int(_section(nearest, self._widths[0])["width"]), target, measure)

    def _with_width(self, width: int, factor: float = 1.0) -> Config | None:
        """Return the settings with another width, and a factor on the expansion; None if they make no
        model."""
        tables = self._config.model_dump()
        for path in self._widths:
            section = _section_of(tables, path)
            section["width"], rest = divmod(section["width"] * width, self._own)
            if rest or not 0 < section["width"] <= MAX_SIZE:
                return None
        for path in self._expansions:
            section = _section_of(tables, path)
            section["expansion"] = round(factor * section["expansion"], 4)
        try:
            config = from_tables(tables)
            shape_of(config, self._processor)
        except MISFITS:
            return None
        return config

    def _units(self) -> list[int]:
        """Return numbers whose multiples are widths: one with fast kernels, then the smallest."""
        divisors = (unit for unit in range(1, self._own) if self._own % unit == 0)
        smallest = next(
            (
                unit
                for unit in divisors
                if self.with_width(self._own + unit) and self.with_width(self._own - unit)
            ),
            self._own,
        )
        return [*dict.fromkeys((math.lcm(smallest, FAST_MULTIPLE), smallest))]

    def _around(self, unit: int, target: int, measure: Callable[[Config], int]) -> Iterator[Config]:
        """Yield the largest model below the target and the smallest above, of widths that `unit` divides."""
        low, high = 0, 1
        while (config := self.with_width(high * unit)) and measure(config) < target:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            config = self.with_width(middle * unit)
            low, high = (middle, high) if config and measure(config) < target else (low, middle)
        yield from (config for times in (low, high) if times and (config := self.with_width(times * unit)))

    def _expanded(self, width: int, target: int, measure: Callable[[Config], int]) -> Iterator[Config]:
        """Yield models of a width with ever better expansions."""
        low, high = EXPANSION_RANGE
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            config = self.with_width(width, middle)
            if config is None:
                return
            yield config
            low, high = (middle, high) if measure(config) < target else (low, middle)


def _section(config: Config, path: str) -> dict[str, Any]:
    return _section_of(config.model_dump(), path)


def _section_of(tables: dict[str, Any], path: str) -> dict[str, Any]:
    """Return the table of a stack among those of a config."""
    section: dict[str, Any] = tables["model"] if path == STACKS[0] else tables["model"]["encoder"]
    return section
