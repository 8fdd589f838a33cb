"""The log of a training as arrays, and the statistics that the rules of the diagnosis share."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64
from numpy.typing import NDArray

PARTS = 20
"""Equal parts of a training whose mean losses are compared: long enough to average out the noise of batches,
and short enough to show what happens."""
FIRST_STEPS = 5
"""Steps whose median loss is that of the start: a single batch may be far off, and later ones have
learned."""
FULL_RATE = 0.5
"""The rate is high from this share of the highest upwards. Below, the loss also falls because the rate
falls."""


class Level(NamedTuple):
    """The mean loss of a part of the training, and the standard error of the mean."""

    mean: float
    error: float


@dataclass(frozen=True)
class History:
    """The log of a training. Losses that are not finite are not in the arrays."""

    steps: Int64[np.ndarray, " N"]
    loss: Float64[np.ndarray, " N"]
    """The loss of each step's batch."""
    rate: Float64[np.ndarray, " N"]
    held_out_steps: Int64[np.ndarray, " E"]
    held_out: Float64[np.ndarray, " E"]
    """The loss on held-out data at each evaluation."""
    nonfinite: tuple[tuple[int, str], ...] = ()
    """The steps whose numbers were not finite, with the place of the first such number."""
    chance: float | None = None
    """The loss of a guess, ln C for C outcomes; None if unknown."""
    regularizers: tuple[str, ...] = ()
    """The settings that make the training loss higher than that of the same rows without them."""
    is_at_its_end: bool = True
    """Whether the training has ended, and was not stopped before or still runs."""

    @cached_property
    def start(self) -> float:
        """The loss before the training: the median of the first batches, at most that of a guess."""
        first = float(np.median(self.loss[:FIRST_STEPS]))
        return first if self.chance is None else min(first, self.chance)

    @cached_property
    def levels(self) -> list[Level]:
        """The levels of `PARTS` equal parts of the steps."""
        return [level(part) for part in np.array_split(self.loss, PARTS)]

    @property
    def end(self) -> Level:
        """The level of the last tenth of the steps."""
        return self.between(0.9, 1.0)

    @property
    def drop(self) -> float:
        """Return how far the training loss fell from the start to its end."""
        return self.start - self.end.mean

    @cached_property
    def decays(self) -> bool:
        """Return whether the rate is low at the end."""
        return bool(self.rate[-1] < FULL_RATE * self.rate.max())

    @cached_property
    def full_rate(self) -> Float64[np.ndarray, " F"]:
        """The losses of the steps with a high rate."""
        return self.loss[self.rate >= FULL_RATE * self.rate.max()]

    @cached_property
    def progress(self) -> Float64[np.ndarray, " N"]:
        """The sum of the rates up to each step, as a share: warm-up and decay count for little."""
        total = np.cumsum(self.rate)
        progress: Float64[np.ndarray, " N"] = total / total[-1]
        return progress

    def between(self, first: float, last: float) -> Level:
        """Return the level between two shares of the steps."""
        count = len(self.loss)
        begin = min(int(first * count), count - 1)
        return level(self.loss[begin : max(begin + 1, math.ceil(last * count))])

    def between_progress(self, first: float, last: float) -> Level:
        """Return the level between two shares of the progress; of the nearest step, if none lies there."""
        inside = (self.progress >= first) & (self.progress <= last)
        nearest = np.abs(self.progress - (first + last) / 2).argmin()
        return level(self.loss[inside] if inside.any() else self.loss[[nearest]])

    def step_at(self, share: float) -> int:
        """Return the step at a share of the training."""
        return int(self.steps[min(int(share * len(self.steps)), len(self.steps) - 1)])

    def training_near(self, index: int) -> float:
        """Return the training loss at an evaluation: the mean from halfway to the evaluation before, to
        halfway to the next."""
        at = self.held_out_steps
        low = at[index] if index == 0 else (at[index - 1] + at[index]) / 2
        high = at[index] if index == len(at) - 1 else (at[index] + at[index + 1]) / 2
        near = self.loss[(self.steps >= low) & (self.steps <= high)]
        return float(near.mean()) if len(near) else float(np.interp(at[index], self.steps, self.loss))

    @cached_property
    def held_out_noise(self) -> float:
        """The standard deviation of the held-out loss around its course, from its second differences, in
        which a straight course cancels."""
        bends = np.abs(np.diff(self.held_out, 2))
        return float(1.4826 * np.median(bends) / math.sqrt(6)) if len(bends) else 0.0


def level(losses: NDArray[np.float64]) -> Level:
    """Return the mean of losses, and its standard error from the differences of neighbors, in which the
    course of the training cancels."""
    count = len(losses)
    spread = float(np.sqrt(np.square(np.diff(losses)).mean() / 2)) if count > 1 else math.inf
    return Level(float(losses.mean()), spread / math.sqrt(count))


def history_from_records(
    records: Mapping[str, Sequence[Mapping[str, Any]]],
    chance: float | None = None,
    regularizers: tuple[str, ...] = (),
    is_at_its_end: bool = True,
) -> History:
    """Return the history of a log's records: those of the kinds `step`, `evaluation` and `refused`."""
    steps = [record for record in records["step"] if record["loss"] is not None]
    evaluations = [record for record in records["evaluation"] if record["loss"] is not None]
    nonfinite = [(record["step"], str(record["culprit"])) for record in records["refused"]]
    nonfinite += [
        (record["step"], "the held-out loss") for record in records["evaluation"] if record["loss"] is None
    ]
    return History(
        np.array([record["step"] for record in steps], np.int64),
        np.array([record["loss"] for record in steps], np.float64),
        np.array([record["rate"] for record in steps], np.float64),
        np.array([record["step"] for record in evaluations], np.int64),
        np.array([record["loss"] for record in evaluations], np.float64),
        tuple(sorted(nonfinite)),
        chance,
        regularizers,
        is_at_its_end,
    )
