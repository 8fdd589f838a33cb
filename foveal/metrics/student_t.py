"""Student's t distribution: intervals and tests of means of a few values."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

BISECTIONS = 80
"""Halvings of a range, after which a float64 has no more digits."""


class Mean(NamedTuple):
    """The mean of a few values, with its 95 % interval."""

    value: float
    low: float
    high: float
    p_value: float
    """The probability of a mean as far from 0, if the true mean is 0."""


def t_p_value(t: float, degrees: int) -> float:
    """Return the probability that Student's t is farther from 0 than `t`.

    For a whole number of degrees of freedom this is a finite sum (Abramowitz and Stegun 1964, 26.7.3 and
    26.7.4).

    Example:

        >>> round(metrics.t_p_value(4.303, degrees=2), 4)
        0.05
    """
    angle = math.atan(abs(t) / math.sqrt(degrees))
    squared, total, term = math.cos(angle) ** 2, 0.0, 1.0
    for index in range(degrees // 2):
        total += term
        term *= squared * (2 * index + 1 + degrees % 2) / (2 * index + 2 + degrees % 2)
    inside = math.sin(angle) * total
    if degrees % 2:
        inside = 2 / math.pi * (angle + math.cos(angle) * inside)
    return max(0.0, 1 - inside)


def t_quantile(degrees: int, outside: float = 0.05) -> float:
    """Return the t beyond which, on both sides together, the probability is `outside`.

    Example:

        >>> round(metrics.t_quantile(degrees=4), 3)
        2.776
    """
    low, high = 0.0, 1.0
    while t_p_value(high, degrees) > outside:
        high *= 2
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if t_p_value(middle, degrees) > outside else (low, middle)
    return high


def mean_interval(values: Sequence[float]) -> Mean:
    """Return the mean of at least two values with its 95 % t interval, `mean ± t s / sqrt(n)`.

    Example:

        >>> mean = metrics.mean_interval([2.0, 2.1, 2.2])
        >>> round(mean.low, 2), round(mean.high, 2)
        (1.85, 2.35)
    """
    count, mean = len(values), float(np.mean(values))
    error = float(np.std(values, ddof=1)) / math.sqrt(count)
    if error == 0:
        return Mean(mean, mean, mean, float(mean == 0))
    reach = t_quantile(count - 1) * error
    return Mean(mean, mean - reach, mean + reach, t_p_value(mean / error, count - 1))
