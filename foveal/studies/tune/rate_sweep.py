"""Step 3: the learning rate that makes the loss fall within about 100 iterations (Karpathy's rule, and the
range test of Smith 2017, each rate from the same first weights)."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from foveal.core.progress import ProgressCallback
from foveal.core.terminal_text import decimals
from foveal.studies.tune.probe import Probe, end_level

DECADES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
HALF_DECADE = math.sqrt(10)
SAME = 1.5
"""Rates within this factor of each other are not both tried."""
ITERATIONS, MIN_ITERATIONS = 100, 20
NEAR = 3.2
"""A rate within this factor of the best is near: the losses after 100 iterations say no more."""
NEARLY = 0.05
"""The share of the whole fall by which a loss may end higher than the lowest, and be as good."""
LEAST_FALL = 0.02
"""A loss that falls by less than this share has learned nothing."""
TOO_LOW, TOO_HIGH = 0.5, 0.75
"""A rate far below the best is too low if the loss falls by less than this share of the best fall, and one
far above it too high: few iterations favor high rates."""


@dataclass(frozen=True)
class SweptRate:
    """The losses of each step at a learning rate. The last is infinite if the training broke."""

    lr: float
    losses: tuple[float, ...]

    @property
    def end(self) -> float:
        """The loss at the end."""
        return end_level(self.losses)


@dataclass(frozen=True)
class RateSweep:
    """Learning rates, the lowest first, each from the same weights."""

    set_lr: float
    """The rate that is set."""
    rates: tuple[SweptRate, ...]

    @property
    def best(self) -> SweptRate:
        """The lowest rate with nearly the lowest loss at the end: few iterations favor high rates."""
        lowest = min(rate.end for rate in self.rates)
        limit = lowest + NEARLY * max(0.0, self.start - lowest)
        return next(rate for rate in self.rates if rate.end <= limit)

    @property
    def first_loss(self) -> float:
        return self.rates[0].losses[0]

    @property
    def learns(self) -> bool:
        """Return whether the loss falls at any rate."""
        return self.best.end < self.start - LEAST_FALL * abs(self.start)

    @property
    def start(self) -> float:
        """The loss at the end of the lowest rate, on the same batches as the others, which learns nothing."""
        lowest = self.rates[0].end
        return lowest if math.isfinite(lowest) else self.first_loss

    @property
    def of_set_lr(self) -> SweptRate:
        return next(rate for rate in self.rates if rate.lr == self.set_lr)

    @property
    def is_off(self) -> bool:
        """Return whether the rate that is set is far from those that learn fastest."""
        factor = factor_between(self.set_lr, self.best.lr)
        learned, possible = (self.start - each.end for each in (self.of_set_lr, self.best))
        share = TOO_HIGH if self.set_lr > self.best.lr else TOO_LOW
        return self.learns and factor > NEAR and learned < share * possible

    @property
    def meaning(self) -> str:
        """Return what the losses say."""
        steps, best, own = max(len(rate.losses) for rate in self.rates), self.best, self.of_set_lr
        if not self.learns:
            rates = f"from {self.rates[0].lr:.2g} to {self.rates[-1].lr:.2g}"
            return f"at no rate {rates} did the loss fall in {steps} iterations"
        fall = f"from {decimals(self.first_loss, 3)} to {decimals(best.end, 3)}"
        falls = f"in {steps} iterations {best.lr:.2g} is the lowest rate at which the loss falls fast, {fall}"
        if not self.is_off:
            return f"{falls}; optimizer.lr={self.set_lr:.2g} is near: {_in_words(own)}"
        factor, direction = (
            factor_between(self.set_lr, best.lr),
            "higher" if self.set_lr > best.lr else "lower",
        )
        distance = f"{factor:,.0f} times {direction}"
        return f"{falls}; optimizer.lr={self.set_lr:.2g} is {distance}: {_in_words(own)}"


def factor_between(lr: float, other: float) -> float:
    """Return by which factor one of two rates is higher than the other."""
    return max(lr / other, other / lr)


def _in_words(rate: SweptRate) -> str:
    return "its loss breaks" if math.isinf(rate.end) else f"its loss ends at {decimals(rate.end, 3)}"


def sweep_rates(probe: Probe, seconds: float, progress: ProgressCallback) -> RateSweep:
    """Train at each rate from the same weights and random numbers.

    Fewer iterations are made if 100 take too long.
    """
    set_lr = probe.task.config.optimizer.lr
    planned = 2 + len({*DECADES, set_lr})
    numbers = count()

    def train(lr: float, iterations: int) -> SweptRate:
        progress(next(numbers), planned)
        return SweptRate(lr, tuple(probe.train(lr, iterations, _never)))

    began = time.monotonic()
    first = SweptRate(set_lr, tuple(probe.train(set_lr, MIN_ITERATIONS, _never)))
    per_step = (time.monotonic() - began) / len(first.losses)
    iterations = max(MIN_ITERATIONS, min(ITERATIONS, int(seconds / planned / per_step)))
    rates = {lr: train(lr, iterations) for lr in sorted({*DECADES, set_lr})}
    best = min(rates.values(), key=lambda rate: rate.end).lr
    for lr in (best / HALF_DECADE, best * HALF_DECADE):
        if all(factor_between(lr, other) > SAME for other in rates):
            rates[lr] = train(lr, iterations)
    return RateSweep(set_lr, tuple(rates[lr] for lr in sorted(rates)))


def _never(losses: Sequence[float]) -> bool:
    return False
