"""Rules about the learning rate, and about trainings that break."""

from itertools import groupby

import numpy as np

from foveal.inspection.diagnosis.finding import Finding
from foveal.inspection.diagnosis.history import PARTS, History, Level

NONFINITE, DIVERGENCE, RATE_TOO_HIGH, RATE_TOO_LOW = (
    "numbers not finite",
    "divergence",
    "rate too high",
    "rate too low",
)
LOST_AGAIN = 0.5
"""A training has diverged if half of what it had learned is lost at its end."""
ABOVE_START = 1.25
"""A loss this many times that of the start is no noise of a batch: the weights were thrown away."""
ERRORS = 5.0
"""Standard errors beyond which a difference of means is no chance, although thousands are compared."""
THROWN_BACK, MIN_PARTS_BACK = 0.2, 4
"""A training is thrown back if it loses this share of what it had learned, for at least so many of its
parts."""
ALL_BACK = [True] * MIN_PARTS_BACK
SPIKE = 0.2
"""A spike is as high as this share of what was learned: more than a hard batch."""
SPIKE_DEVIATIONS = 8.0
"""Deviations that noise with heavy tails does not reach in the mean of several steps."""
MIN_SPIKES = 3
"""A single spike may be a single spoiled batch."""
MANY_SPIKES = 6
"""Fewer spikes than these, all before the last third, may belong to the start: they have ended."""
SPIKE_WINDOW, NEIGHBORHOOD = 200, 20
"""A spike is a mean over 1/200 of the steps (at least three), compared with the median of 1/20 around it."""
ZIGZAG, LEAST_ZIGZAG = 0.1, 0.03
"""The held-out loss zigzags if it goes up by this share of what was learned and this share of the start, and
down again, several times."""
MIN_ZIGZAGS = 3
LITTLE = 0.15
"""A loss that has fallen by less than this share has learned little: the frequencies of the answers at
most."""
STRAIGHT = 0.4
"""A straight line has half of its fall in each half; a training that nears its end has far less in the
second."""


def nonfinite(history: History) -> Finding | None:
    """Find losses or gradients that were not finite."""
    if not history.nonfinite:
        return None
    step, place = history.nonfinite[0]
    count = len(history.nonfinite)
    return Finding(
        NONFINITE,
        step,
        f"{count:,} time{'s' * (count > 1)} a number was not finite, first at step {step:,} in {place}; such "
        "steps change nothing",
        "data with such numbers: the first one is then in the same rows at each rate",
        "a lower optimizer.lr, a longer schedule.warmup_steps, optimizer.clip_norm=1, "
        "training.precision=float32",
    )


def divergence(history: History) -> Finding | None:
    """Find a loss that rises at the end, and loses what was learned."""
    levels = history.levels
    best = min(range(PARTS), key=lambda number: levels[number].mean)
    lowest, last = levels[best], levels[-1]
    learned = max(history.start - lowest.mean, 0.0)
    rise = last.mean - lowest.mean
    lost = rise > LOST_AGAIN * learned and last.mean > ABOVE_START * lowest.mean
    if best == PARTS - 1 or not lost or not _differ(lowest, last) or last.mean < _half(history, lowest):
        return None
    if last.mean < ABOVE_START * history.start and learned < LITTLE * history.start:
        return None  # it never learned; the rule of a rate that is too high looks at that
    start = next(n for n in range(best, PARTS) if levels[n].mean > lowest.mean + LOST_AGAIN * rise)
    step = history.step_at(start / PARTS)
    return Finding(
        DIVERGENCE,
        step,
        f"the training loss rose from {lowest.mean:.3f} around step {history.step_at(best / PARTS):,} to "
        f"{last.mean:.3f} at the end, from {history.start:.3f} at the start",
        "data that change in the course of the training: the held-out loss then stays low",
        "a lower optimizer.lr, a longer schedule.warmup_steps, optimizer.clip_norm=1; the best weights are "
        "kept",
    )


def _half(history: History, lowest: Level) -> float:
    return lowest.mean + LOST_AGAIN * max(history.start - lowest.mean, 0.0)


def _differ(first: Level, second: Level) -> bool:
    return abs(first.mean - second.mean) > ERRORS * (first.error + second.error)


def rate_too_high(history: History) -> Finding | None:
    """Find a loss that is thrown up at the start, spikes, or zigzags to the end."""
    return _thrown_up(history) or _thrown_back(history) or _spikes(history) or _zigzags(history)


def _thrown_up(history: History) -> Finding | None:
    """Find a loss that rose far above its start, and learned little afterwards."""
    levels = [*history.levels[: PARTS // 2]]
    highest = max(levels, key=lambda part: part.mean)
    first = history.loss[: max(3, len(history.loss) // 50)]
    peak, where = max((highest.mean, history.step_at(levels.index(highest) / PARTS)), (float(first.max()), 1))
    little = history.drop < LITTLE * history.start
    if not little or peak < ABOVE_START * max(history.start, float(history.loss[0])):
        return None
    return _too_high(
        where,
        f"the loss rose from {history.loss[0]:.3f} to {peak:.3f} at the start, and was "
        f"{history.end.mean:.3f} "
        "at the end",
    )


def _thrown_back(history: History) -> Finding | None:
    """Find a loss that rose after it had fallen, and was above that for a long part of the training."""
    levels = history.levels
    for low in range(PARTS):
        limit = levels[low].mean + THROWN_BACK * (history.start - levels[low].mean)
        above = [level.mean > limit and _differ(levels[low], level) for level in levels[low + 1 :]]
        rise = next((n for n in range(len(above)) if above[n : n + MIN_PARTS_BACK] == ALL_BACK), None)
        if levels[low].mean < history.start and rise is not None:
            first = low + 1 + rise
            length = [*above[rise:], False].index(False)
            highest = max(level.mean for level in levels[first : first + length])
            step, end = history.step_at(first / PARTS), history.step_at((first + length) / PARTS)
            return _too_high(
                step,
                f"the loss had fallen to {levels[low].mean:.3f}, rose to {highest:.3f} from step {step:,} "
                "on, "
                f"and was as low again only after step {end:,}",
            )
    return None


def _spikes(history: History) -> Finding | None:
    count = len(history.loss)
    window = max(3, count // SPIKE_WINDOW)
    if count < 4 * NEIGHBORHOOD:
        return None
    means = np.convolve(history.loss, np.ones(window) / window, "valid")
    side = max(window, count // NEIGHBORHOOD)
    padded = np.pad(means, side // 2, mode="edge")
    views = np.lib.stride_tricks.sliding_window_view(padded, 2 * (side // 2) + 1)
    thinned = max(1, side // 50)  # the median of every nth value around, which is as good
    around = np.median(views[:, ::thinned], axis=1)
    above = means - around
    deviation = 1.4826 * float(np.median(np.abs(above)))
    limit = max(SPIKE * (history.start - float(history.loss.min())), SPIKE_DEVIATIONS * deviation)
    starts = [
        next(iter(group))[0]
        for high, group in groupby(enumerate(above > limit), lambda item: item[1])
        if high
    ]
    starts = [start for start in starts if start > window]
    goes_on = bool(starts) and starts[-1] >= len(above) * 2 // 3
    if len(starts) < (MIN_SPIKES if goes_on else MANY_SPIKES):
        return None
    highest = float(above.max())
    return _too_high(
        int(history.steps[starts[0]]),
        f"{len(starts)} times the loss jumped by more than {limit:.3f} over its neighborhood, by "
        f"{highest:.3f} "
        f"at most, first at step {history.steps[starts[0]]:,}, and last at step "
        f"{history.steps[starts[-1]]:,}",
    )


def _zigzags(history: History) -> Finding | None:
    half = history.held_out[len(history.held_out) // 2 :]
    if len(half) < 2 * MIN_ZIGZAGS:
        return None
    limit = max(ZIGZAG * (history.start - float(history.held_out.min())), LEAST_ZIGZAG * history.start)
    moves = np.diff(half)
    ups, downs = int((moves > limit).sum()), int((moves < -limit).sum())
    if min(ups, downs + 1) < MIN_ZIGZAGS:
        return None
    step = int(history.held_out_steps[len(history.held_out) // 2])
    return _too_high(
        step,
        f"in the second half the held-out loss rose {ups} times and fell {downs} times by more than "
        f"{limit:.3f} from one evaluation to the next, and its last is {history.held_out[-1]:.3f}, against "
        f"{history.held_out.min():.3f} at best",
    )


def _too_high(step: int, evidence: str) -> Finding:
    return Finding(
        RATE_TOO_HIGH,
        step,
        evidence,
        "the same jumps at a third of the rate: then the rows of those batches are the cause",
        "optimizer.lr at a third, a longer schedule.warmup_steps, a decay, larger batches, "
        "optimizer.clip_norm=1",
    )


def rate_too_low(history: History) -> Finding | None:
    """Find a loss that falls along a straight line, but little."""
    first, middle, last = (history.between_progress(start, start + 0.2) for start in (0.0, 0.4, 0.8))
    fall, later = first.mean - last.mean, middle.mean - last.mean
    if not _differ(first, last) or fall <= 0 or history.drop > LITTLE * history.start:
        return None
    if later + middle.error + last.error < STRAIGHT * fall:
        return None
    return Finding(
        RATE_TOO_LOW,
        int(history.steps[0]),
        f"with a highest rate of {history.rate.max():.2g} the loss fell by {history.drop:.3f} from "
        f"{history.start:.3f}, along a nearly straight line: by {later:.3f} of {fall:.3f} in the second half",
        "a loss that is no lower with a rate ten times as high",
        "optimizer.lr ten times as high; then more steps",
    )
