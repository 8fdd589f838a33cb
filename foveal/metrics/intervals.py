"""Confidence intervals of scores."""

import math

import numpy as np

from foveal.metrics.score import MetricResult

NORMAL_QUANTILE = 1.959964
"""The quantile of the normal distribution for 95 %."""
ConfidenceInterval = tuple[float, float]


def bootstrap_interval(score: MetricResult, resamples: int = 1000, seed: int = 0) -> ConfidenceInterval:
    """Return the 95 % percentile interval over resampled examples (Efron 1979; for BLEU: Koehn 2004).

    The resamples depend only on `seed` and the number of examples. Metrics, and models on the same examples,
    are therefore compared on the same resamples.

    Example:

        >>> score = metrics.wer(["the cat sat", "a dog ran"] * 20, ["the cat sat", "a dog"] * 20)
        >>> low, high = metrics.bootstrap_interval(score)
        >>> low < score.value < high
        True
    """
    generator, count = np.random.default_rng(seed), len(score.per_example)
    values = [score.on_rows(generator.integers(count, size=count)) for _ in range(resamples)]
    low, high = np.quantile(values, [0.025, 0.975]).tolist()
    return low, high


def wilson_interval(share: float, count: int) -> ConfidenceInterval:
    """Return the 95 % score interval of a share of `count` examples (Wilson 1927).

        (p + z²/2n ± z sqrt(p(1 - p)/n + z²/4n²)) / (1 + z²/n)

    Unlike the bootstrap's, the interval of a share of 1 has a width, which falls with the number of examples.

    Example:

        >>> low, high = metrics.wilson_interval(1.0, 2)  # two of two are right
        >>> round(low, 2), high
        (0.34, 1.0)
    """
    z_squared = NORMAL_QUANTILE**2
    center = share + z_squared / (2 * count)
    reach = NORMAL_QUANTILE * math.sqrt(share * (1 - share) / count + z_squared / (4 * count**2))
    scale = 1 + z_squared / count
    return max(0.0, (center - reach) / scale), min(1.0, (center + reach) / scale)


def confidence_interval(score: MetricResult, seed: int = 0) -> ConfidenceInterval | None:
    """Return the 95 % confidence interval of a score.

    A share has Wilson's, and any other score the bootstrap's. There is None if all resamples have the same
    score, since the examples then say nothing about its spread, and for calibration errors, which are larger
    on all resamples.

    Example:

        >>> low, high = metrics.confidence_interval(metrics.accuracy(["a", "b"] * 50, ["a", "a"] * 50))
        >>> round(low, 2), round(high, 2)
        (0.4, 0.6)
    """
    if score.is_share:
        return wilson_interval(score.value, len(score.per_example))
    if not score.can_be_resampled:
        return None
    low, high = bootstrap_interval(score, seed=seed)
    return (low, high) if low < high else None
