"""What a metric says about examples: all of them, each one, and any selection."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError

RowIndices = NDArray[np.int64]
"""Numbers of examples, which may repeat."""


@dataclass(frozen=True)
class MetricResult:
    """`value` is the metric on all N examples, `per_example` (N,) on every one alone, `on_rows` on a
    selection."""

    name: str
    value: float
    per_example: NDArray[np.float64]
    on_rows: Callable[[RowIndices], float]
    higher_is_better: bool = True
    signature: str = ""
    """How it was computed, in the words of the library that publishes it."""


def error_rate(name: str, errors: Sequence[int], totals: Sequence[int]) -> MetricResult:
    """Errors over totals (N,), both summed first. Where the total is 0, errors are counted over 1."""
    return _ratio(name, errors, totals, lambda error, total: error / total, higher_is_better=False)


def success_rate(name: str, errors: Sequence[int], totals: Sequence[int]) -> MetricResult:
    """1 - errors / totals (N,), both summed first; 1 where the total is 0."""
    return _ratio(name, errors, totals, lambda error, total: (total - error) / total, higher_is_better=True)


def _ratio(
    name: str,
    errors: Sequence[int],
    totals: Sequence[int],
    rate: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
    higher_is_better: bool,
) -> MetricResult:
    wrong, whole = np.asarray(errors, np.float64), np.asarray(totals, np.float64)

    def of(rows: RowIndices) -> float:
        return float(rate(wrong[rows].sum(), whole[rows].sum().clip(1)))

    every = np.arange(len(wrong))
    return MetricResult(name, of(every), rate(wrong, whole.clip(1)), of, higher_is_better)


def check_pairs(references: Sequence[object], outputs: Sequence[object]) -> None:
    """Errors: UserError where there is nothing to score, ValueError for unequal numbers."""
    if len(references) != len(outputs):
        raise ValueError(f"{len(outputs)} outputs for {len(references)} references")
    if not references:
        raise UserError("there are no examples to score: give data with at least one row that can be used")
