"""Rules that compare the training loss with the held-out loss: overfitting, and leaks."""

import numpy as np

from foveal.inspection.diagnosis.finding import Finding
from foveal.inspection.diagnosis.history import History

OVERFITTING, LEAK = "overfitting", "leak"
MIN_EVALUATIONS = 6
"""Evaluations without which a held-out curve has no shape."""
EVALUATIONS_SINCE_BEST = 2
"""A single evaluation that is worse than the best may be chance."""
RISE, LEAST_RISE = 0.05, 0.02
"""The held-out loss has risen if it lost this share of what it had won, and this share of the loss at the
start. Less is lost between two evaluations of healthy trainings."""
NOISE_FACTOR, LIKELY_FACTOR = 4.0, 2.0
"""Standard deviations by which chance does not set the best of many evaluations apart, and those that chance
reaches in one of 20 cases."""
STILL_FALLS, STANDS = 0.1, 0.2
"""The training loss still falls by this share of its whole fall while the held-out loss falls by less than
this share of that: most of what is learned then holds for the training rows only."""
ERRORS = 5.0
"""Errors of a mean training loss by which chance does not set it apart from another."""
LEAK_RATIO = 0.5
"""Held-out rows are as hard as training rows, so their loss is as high. Half of it is more than easier rows
explain."""
REGULARIZED_LEAK_RATIO = 0.2
"""With dropout, augmentation or averaged weights the training loss is higher than that of the same rows
without them: two to three times is usual."""


def overfitting(history: History) -> Finding | None:
    """Find a held-out loss that rises, or stands, while the training loss falls."""
    if len(history.held_out) < MIN_EVALUATIONS:
        return None
    return _rises(history) or _stands(history)


def _rises(history: History) -> Finding | None:
    best = int(history.held_out.argmin())
    lowest, last = float(history.held_out[best]), float(history.held_out[-EVALUATIONS_SINCE_BEST:].mean())
    training = history.training_near(best) - history.end.mean
    margins = RISE * (history.start - lowest), LEAST_RISE * history.start
    is_late = len(history.held_out) - 1 - best >= EVALUATIONS_SINCE_BEST
    rises = last - lowest > max(*margins, NOISE_FACTOR * history.held_out_noise)
    if not is_late or not rises or training <= RISE * history.drop:
        return None
    step = int(history.held_out_steps[best])
    return _overfitting(
        step,
        f"from step {step:,} to the end the held-out loss rose from {lowest:.3f} to {last:.3f}, while the "
        f"training loss fell by {training:.3f} to {history.end.mean:.3f}",
    )


def _stands(history: History) -> Finding | None:
    """Compare both curves since the middle of the training."""
    middle = len(history.held_out) // 2
    # Each mean is of two neighbors, so that a single evaluation decides nothing.
    before = float(history.held_out[middle - 1 : middle + 1].mean())
    held_out = before - float(history.held_out[-2:].mean())
    training = (history.training_near(middle - 1) + history.training_near(middle)) / 2 - history.end.mean
    is_large = history.drop > 0 and training > max(STILL_FALLS * history.drop, ERRORS * history.end.error)
    if not is_large or held_out + LIKELY_FACTOR * history.held_out_noise > STANDS * training:
        return None
    if history.held_out[-2:].mean() < history.end.mean:  # the gap has the other sign
        return None
    step = int(history.held_out_steps[middle])
    return _overfitting(
        step,
        f"since step {step:,} the training loss fell by {training:.3f} to {history.end.mean:.3f}, but the "
        f"held-out loss by {held_out:.3f} to {history.held_out[-1]:.3f}",
    )


def _overfitting(step: int, evidence: str) -> Finding:
    return Finding(
        OVERFITTING,
        step,
        evidence,
        "a held-out loss that falls with the training loss on other held-out rows",
        "more data, augmentation, dropout or weight decay, a smaller model, or fewer steps; the run keeps "
        "its "
        "best weights if training.keep=best",
    )


def leak(history: History) -> Finding | None:
    """Find a held-out loss far below the training loss in the second half of the evaluations."""
    if len(history.held_out) < MIN_EVALUATIONS:
        return None
    half = range(len(history.held_out) // 2, len(history.held_out))
    ratios = [float(history.held_out[index]) / history.training_near(index) for index in half]
    limit = REGULARIZED_LEAK_RATIO if history.regularizers else LEAK_RATIO
    if not 0 < np.max(ratios) < limit:
        return None
    raised = f", beyond the effect of {', '.join(history.regularizers)}" if history.regularizers else ""
    return Finding(
        LEAK,
        int(history.held_out_steps[half[0]]),
        f"in the second half the held-out loss is at most {np.max(ratios):.2f} times the training loss "
        f"({history.held_out[-1]:.3f} and {history.end.mean:.3f} at the end){raised}",
        "held-out rows that are easier: another split with another seed gives a loss as high as training's",
        "search for rows that are in both parts (duplicates, parts of one document, copies of one image), "
        "and "
        "for columns that hold the answer",
    )
