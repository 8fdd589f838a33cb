"""Rules about first weights: the first loss, and the start of the curve."""

import math

import numpy as np

from foveal.inspection.diagnosis.finding import Finding
from foveal.inspection.diagnosis.history import History, level

FIRST_LOSS, FLAT_START = "bad first weights: first loss", "bad first weights: flat start"
WORSE_THAN_GUESS = math.log(4)
"""Nats above the loss of a guess: the right answer then has a quarter of the probability that a guess gives
it."""
FIRST_STEPS, DEVIATIONS = 20, 4.0
"""The noise of a batch is measured in the first steps, and may be a quarter too small: three measured
deviations are no proof."""
FLAT_SHARE = 0.15
"""A curve starts flat if nothing is learned in this share of the training, its steps weighted by their rates,
so that a warm-up does not count."""
NOTHING = 0.07
"""Nothing is learned if from the first third of this share to its last third the loss fell by less than this
part of its whole fall. A straight line falls by 0.1, a curve that flattens by more."""
MUCH = 0.2
"""The whole fall is at least this share of the first loss, else there is no drop after the flat start."""
ERRORS = 5.0
"""Standard errors that chance does not reach."""


def first_loss(history: History) -> Finding | None:
    """Find a first loss far above that of a guess."""
    if history.chance is None or history.steps[0] > 1:
        return None
    first, early = float(history.loss[0]), history.loss[:FIRST_STEPS]
    noise = level(early).error * math.sqrt(len(early)) if len(early) > 1 else 0.0
    if first - history.chance < max(WORSE_THAN_GUESS, DEVIATIONS * noise):
        return None
    return Finding(
        FIRST_LOSS,
        1,
        f"the first loss is {first:.3f}; a guess among {math.exp(history.chance):,.0f} outcomes has "
        f"{history.chance:.3f}",
        "weights of an earlier training for other outcomes, which start so on purpose",
        "smaller first weights of the projection to the outcomes, standardized inputs; "
        "model.initialization=default",
    )


def flat_start(history: History) -> Finding | None:
    """Find a loss that stays where it begins, and falls later."""
    early = history.loss[history.progress <= FLAT_SHARE]
    if len(early) < 6:
        return None
    first, later = level(early[: len(early) // 3]), level(early[-(len(early) // 3) :])
    fall = first.mean - history.end.mean
    if fall < MUCH * first.mean or fall < ERRORS * (first.error + history.end.error):
        return None
    learned = first.mean - later.mean
    if learned + 2 * math.hypot(first.error, later.error) > NOTHING * fall or learned < -NOTHING * fall:
        return None
    smooth = np.convolve(history.loss, np.ones(len(early) // 3) / (len(early) // 3), "valid")
    drops = int(np.argmax(smooth < first.mean - NOTHING * fall))
    step = int(history.steps[drops])
    return Finding(
        FLAT_START,
        step,
        f"until step {step:,} the loss stayed at {first.mean:.3f}; it fell by {fall:.3f} afterwards",
        "the same flat start with other first weights, or a drop as late at a higher rate",
        "model.initialization=kaiming (rectifiers) or xavier (tanh), a norm in each block, a longer warm-up; "
        "the view activations shows which layers vanish or saturate",
    )
