"""Which trial of a study is taken: the lowest loss, with few changes, and not by luck."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from foveal.studies.tune.journal import Origin, Trial

AS_GOOD = 0.005
"""A loss higher by less than this share is as good: settings with fewer changes are then chosen."""
PAYS_LATER, MOST = 0.02, 0.1
"""Regularization pays in long trainings. In trials as long as these a loss higher by less than the first
share is as good with it, in shorter ones by so much more, but at most by the second."""
NOT_SEARCHED: tuple[Origin, ...] = ("given", "corrected", "preset")
"""The origins of settings that were not chosen among many."""


@dataclass(frozen=True)
class MissingRegularization:
    """Regularization that the preset has and the given settings turn off."""

    settings: Mapping[str, str]
    share: float
    """A loss higher by less than this share is as good with it, in the trials of a study."""


NOTHING_MISSING = MissingRegularization({}, 0.0)


def missing_regularization(settings: Mapping[str, str], steps: int, full_steps: int) -> MissingRegularization:
    """Return what trials of some steps can say of missing regularization: nothing if they are as long as a
    whole training, in which it has to show its gain."""
    if steps >= full_steps:
        return NOTHING_MISSING
    return MissingRegularization(settings, min(MOST, PAYS_LATER * full_steps / steps))


def best_trial(trials: Sequence[Trial], missing: MissingRegularization) -> Trial | None:
    """Return the trial with the lowest held-out loss, or one as good with fewer changes, or one as good with
    the missing regularization. None if no trial came to its end."""
    ended = [(each.loss, each) for each in trials if each.state == "finished" and each.loss is not None]
    if not ended:
        return None
    lowest = min(loss for loss, _ in ended)

    def as_good(share: float) -> list[Trial]:
        return [trial for loss, trial in ended if loss <= lowest + share * abs(lowest)]

    best = min(as_good(AS_GOOD), key=lambda trial: len(trial.settings))
    regularized = {**best.settings, **missing.settings}
    return next((each for each in as_good(missing.share) if each.settings == regularized), best)


def recommended_trial(
    best: Trial, trials: Sequence[Trial], missing: MissingRegularization, new_seeds: Sequence[float]
) -> Trial:
    """Return the best trial if its settings were not searched, or if their losses with new seeds, too, are
    lower on average than the losses of those that were not; else the best of the latter.

    The lowest of many losses is partly luck, which new seeds don't have.
    """
    plain = best_trial([each for each in trials if each.origin in NOT_SEARCHED], missing)
    if best.origin in NOT_SEARCHED or plain is None or plain.loss is None or not new_seeds:
        return best
    return best if fmean(new_seeds) < plain.loss else plain
