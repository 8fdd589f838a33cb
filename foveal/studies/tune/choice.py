"""Which trial of a study is taken: the lowest loss, with few changes, and not by luck."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from foveal.studies.tune.journal import Origin, Trial

AS_GOOD = 0.005
"""A loss higher by less than this share is as good: settings with fewer changes are then chosen."""
PAYS_LATER = 0.02
"""A loss higher by less than this share is as good with the regularization of the preset where there is none
else, in trials shorter than a whole training: regularization pays in long ones."""
NOT_SEARCHED: tuple[Origin, ...] = ("given", "corrected", "preset")
"""The origins of settings that were not chosen among many."""


def best_trial(trials: Sequence[Trial], regularization: Mapping[str, str]) -> Trial | None:
    """Return the trial with the lowest held-out loss, or one as good with fewer changes, or one as good that
    differs by `regularization`, if there is any. None if no trial came to its end."""
    ended = [(each.loss, each) for each in trials if each.state == "finished" and each.loss is not None]
    if not ended:
        return None
    lowest = min(loss for loss, _ in ended)

    def as_good(share: float) -> list[Trial]:
        return [trial for loss, trial in ended if loss <= lowest + share * abs(lowest)]

    best = min(as_good(AS_GOOD), key=lambda trial: len(trial.settings))
    regularized = {**best.settings, **regularization}
    return next((each for each in as_good(PAYS_LATER) if each.settings == regularized), best)


def recommended_trial(
    best: Trial, trials: Sequence[Trial], regularization: Mapping[str, str], new_seeds: Sequence[float]
) -> Trial:
    """Return the best trial if its settings were not searched, or if their losses with new seeds, too, are
    lower on average than the losses of those that were not; else the best of the latter.

    The lowest of many losses is partly luck, which new seeds don't have.
    """
    plain = best_trial([each for each in trials if each.origin in NOT_SEARCHED], regularization)
    if best.origin in NOT_SEARCHED or plain is None or plain.loss is None or not new_seeds:
        return best
    return best if fmean(new_seeds) < plain.loss else plain
