"""Rules about the end of a training: it is not reached, it is too high, or it was reached long before."""

import math

import numpy as np

from foveal.inspection.diagnosis.finding import Finding
from foveal.inspection.diagnosis.history import History, Level, level

UNDERFITTING, NOT_CONVERGED, PLATEAU = "underfitting", "not converged", "plateau"
HIGH = 0.7
"""The share of the loss of a guess above which a model has hardly learned its training rows. Linear
classifiers of images are at 0.75, language models of characters at 0.35."""
FLAT = 0.01
"""A curve is flat if a quarter of the training changed it by less than this share of its whole fall. One that
falls as 1/sqrt(step) falls by 0.015."""
STEADY = 0.02
"""A model has no more to learn if the last quarter of the training changed its loss by less than this share
of the loss at the start."""
SMALL_GAP = 0.1
"""A held-out loss higher than the training loss by less than this share of the start has no overfitting."""
STILL_FALLS = 0.1
"""A training is not at its end if the last fifth of the steps at a high rate lowered the loss by this share
of the whole fall. A training that falls as 1/sqrt(step) is at 0.013, as exp(-2 step / steps) at 0.08."""
LAST, ERRORS = 0.2, 4.0
"""The share of the steps whose slope is measured, and standard errors that chance does not reach."""
MUCH = 0.2
"""A plateau is a stop after learning: the loss has fallen by at least this share before."""
DONE = 0.1
"""A loss below this share of the start has little left to fall."""
LATEST = 2
"""The best evaluation is one of the last so many while the held-out loss falls."""


def _largest_fall(before: Level, after: Level) -> float:
    """Return the fall between two levels, with two standard errors added."""
    return before.mean - after.mean + 2 * math.hypot(before.error, after.error)


def underfitting(history: History) -> Finding | None:
    """Find a training that ends with a high loss on its own rows."""
    before, last = history.between(0.5, 0.75), history.between(0.75, 1.0)
    held_out = float(history.held_out[-2:].mean()) if len(history.held_out) else last.mean
    lowest = min(last.mean, held_out)
    small_gap = held_out - last.mean < SMALL_GAP * history.start
    is_steady = _largest_fall(before, last) < STEADY * history.start
    if lowest < HIGH * history.start or not small_gap or not is_steady:
        return None
    guess = "a guess's" if history.chance is not None else "the first"
    return Finding(
        UNDERFITTING,
        history.step_at(0.5),
        f"the training loss ends at {last.mean:.3f}, {last.mean / history.start:.0%} of {guess} "
        f"{history.start:.3f}, and fell by {before.mean - last.mean:.3f} in the last quarter",
        "a larger model that ends as high: then the inputs do not say more about the answers",
        "a larger model or other features, less regularization, a higher optimizer.lr, a check that inputs "
        "and labels belong together",
    )


def not_converged(history: History) -> Finding | None:
    """Find a training that stopped while its loss fell fast."""
    if not history.is_at_its_end:
        return None
    last = history.full_rate[-int(max(3, LAST * len(history.full_rate))) :]
    fall, error = _fall(last)
    whole = history.start - level(last[-max(3, len(last) // 4) :]).mean
    if whole <= 0 or fall < max(STILL_FALLS * whole, ERRORS * error):
        return None
    if len(history.held_out) and len(history.held_out) - 1 - int(history.held_out.argmin()) >= LATEST:
        return None
    where = "of those at a high rate" if history.decays else "of the steps"
    return Finding(
        NOT_CONVERGED,
        int(history.steps[-1]),
        f"the last fifth {where} lowered the loss by {fall:.3f}, {fall / whole:.0%} of its whole fall",
        "a training twice as long that ends no lower",
        "a larger budget, such as --budget +10m with foveal resume, or a higher optimizer.lr",
    )


def _fall(losses: np.ndarray) -> tuple[float, float]:
    """Return the fall of a straight line through losses, and its standard error."""
    x = np.linspace(-0.5, 0.5, len(losses))
    slope = float((x * losses).sum() / np.square(x).sum())
    rest = losses - losses.mean() - slope * x
    return -slope, float(np.sqrt(np.square(rest).mean() / np.square(x).sum()))


def plateau(history: History) -> Finding | None:
    """Find a loss that stays for half of the training, although the rate is high and the loss not small."""
    if history.decays or history.drop < MUCH * history.start or history.end.mean < DONE * history.start:
        return None
    before, last = history.between(0.5, 0.75), history.between(0.75, 1.0)
    if _largest_fall(before, last) > FLAT * history.drop:
        return None
    if len(history.held_out) >= 4:
        half = history.held_out[len(history.held_out) // 2 :]
        early, late = half[: len(half) // 2], half[len(half) // 2 :]
        error = history.held_out_noise * math.sqrt(1 / len(early) + 1 / len(late))
        if early.mean() - late.mean() - 2 * error > FLAT * history.drop:
            return None
    return Finding(
        PLATEAU,
        history.step_at(0.5),
        f"in the last half the loss stayed at {last.mean:.3f} (it fell by {before.mean - last.mean:.3f} "
        f"from its third quarter to its last, of {history.drop:.3f} in all), at a rate of "
        f"{history.rate[-1]:.2g}",
        "a loss that stays there at a lower rate, too: then the model is at its end",
        "a decay of the rate (schedule.name=linear or cosine), a lower optimizer.lr from there, or fewer "
        "steps",
    )
