"""Smooth curves, and the part of an axis that they need."""

from collections.abc import Sequence

import numpy as np

from foveal.inspection.curves.log_records import LoggedTraining, Record

SMOOTHING_DIVISOR = 40
"""The smoothed curve averages over about 1/40 of the run."""
IGNORED_START_DIVISOR = 20
"""The first 1/20 of the run does not set the limits of the axis, because it may be far above the rest."""


def smooth(values: Sequence[float]) -> list[float]:
    """Return the exponential moving average, corrected for its start (Kingma and Ba 2015, section 3)."""
    decay = 1 - 1 / max(1.0, len(values) / SMOOTHING_DIVISOR)
    average, result = 0.0, []
    for count, value in enumerate(values, 1):
        average = decay * average + (1 - decay) * value
        result.append(average / (1 - decay**count))
    return result


def positions(training: LoggedTraining, records: Sequence[Record], by: str) -> Sequence[float | int]:
    """Return the places of records on an axis, such as `seconds`. Only the records of steps have those;
    evaluations lie at the place of their step."""
    at = [record["step"] for record in records]
    if by == "step" or not at:
        return at
    known = [record["step"] for record in training.steps], [record[by] for record in training.steps]
    return [float(place) for place in np.interp(at, *known)]


def y_limits(trainings: Sequence[LoggedTraining]) -> tuple[float, float] | None:
    """Return limits that show the held-out losses and the smoothed curves, except for the start of
    training; None without steps."""
    high, low = [], []
    for training in trainings:
        x = [record["step"] for record in training.steps]
        y = [record["loss"] for record in training.steps]
        if y:
            start = len(y) // IGNORED_START_DIVISOR
            evaluated = [record["loss"] for record in training.evaluations if record["step"] >= x[start]]
            high.append(max(smooth(y)[start:] + evaluated))
            low.append(min(y + evaluated))
    if not high:
        return None
    margin = 0.05 * (max(high) - min(low)) or 0.1
    return min(low) - margin, max(high) + margin
