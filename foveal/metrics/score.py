"""The result of a metric on all examples, on each example, and on any subset."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError

RowIndices = NDArray[np.int64]
"""Indices of examples, which may repeat."""


@dataclass(frozen=True)
class MetricResult:
    """The result of a metric.

    `value` is the metric on all N examples, `per_example` (N,) on each example, and `on_rows` on a subset of
    rows.
    """

    name: str
    value: float
    per_example: NDArray[np.float64] = field(repr=False)
    on_rows: Callable[[RowIndices], float] = field(repr=False)
    higher_is_better: bool = True
    signature: str = ""
    """How the metric was computed, in the form of the library that computes it."""
    is_share: bool = False
    """Whether the value is the share of examples that are right, each of them right or wrong."""
    is_rate: bool = False
    """Whether the value is a ratio of counts, which is shown in percent."""
    can_be_resampled: bool = True
    """Whether resamples of the examples have the metric's value on average, so that they give an interval."""


def error_rate(name: str, errors: Sequence[int], totals: Sequence[int]) -> MetricResult:
    """Return the sum of errors over the sum of totals (N,). If the total is 0, the denominator is 1.

    Example:

        >>> metrics.error_rate("errors per word", errors=[1, 0], totals=[3, 2]).value
        0.2
    """
    return _ratio(name, errors, totals, lambda error, total: error / total, higher_is_better=False)


def success_rate(name: str, errors: Sequence[int], totals: Sequence[int]) -> MetricResult:
    """Return 1 minus the sum of errors over the sum of totals (N,). The rate is 1 if the total is 0.

    Example:

        >>> metrics.success_rate("right", errors=[1, 0, 0, 0], totals=[1, 1, 1, 1]).value
        0.75
    """
    return _ratio(name, errors, totals, lambda error, total: (total - error) / total, higher_is_better=True)


def _ratio(
    name: str,
    errors: Sequence[int],
    totals: Sequence[int],
    rate: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
    higher_is_better: bool,
) -> MetricResult:
    """Return a rate of summed errors and totals."""
    error_counts, total_counts = np.asarray(errors, np.float64), np.asarray(totals, np.float64)

    def rate_of(rows: RowIndices) -> float:
        return float(rate(error_counts[rows].sum(), total_counts[rows].sum().clip(1)))

    all_rows = np.arange(len(error_counts))
    return MetricResult(
        name,
        rate_of(all_rows),
        rate(error_counts, total_counts.clip(1)),
        rate_of,
        higher_is_better,
        is_share=higher_is_better and bool((total_counts == 1).all()),
        is_rate=True,
    )


def check_pairs(references: Sequence[object], outputs: Sequence[object]) -> None:
    """Check that there are examples, and as many outputs as references.

    Raises: UserError: there are no examples.
    Raises: ValueError: the numbers differ.
    """
    if len(references) != len(outputs):
        raise ValueError(f"{len(outputs)} outputs for {len(references)} references")
    if not references:
        raise UserError("there are no examples to score: give data with at least one usable row")
