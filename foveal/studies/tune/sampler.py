"""Settings drawn by Optuna: at random, or where the best trials were."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from foveal.core.extras import require
from foveal.studies.tune.space import Dimension, Value, settings_of

if TYPE_CHECKING:  # an extra, which is imported when a study begins
    from optuna.distributions import BaseDistribution

RANDOM_TRIALS = 4
"""Trials inside the space without which settings are drawn at random (Bergstra and Bengio 2012); with them by
a tree-structured Parzen estimator (Bergstra et al. 2011)."""
Ended = Sequence[tuple[Mapping[str, Value], float]]
"""The values of earlier trials by the names of dimensions, and their losses."""


def draw_settings(space: Sequence[Dimension], ended: Ended, seed: int) -> dict[str, str]:
    """Return settings drawn from a space, given the earlier trials that lie in it."""
    require("optuna", "foveal tune")
    import optuna

    distributions = {each.name: _distribution(each) for each in space}
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(n_startup_trials=RANDOM_TRIALS, seed=seed))
    for values, loss in ended:
        params = {name: values[name] for name in distributions}
        if all(each.contains(params[each.name]) for each in space):
            study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=loss))
    return settings_of(space, study.ask(distributions).params)


def _distribution(dimension: Dimension) -> "BaseDistribution":
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    if dimension.choices:
        return CategoricalDistribution(dimension.choices)
    return FloatDistribution(dimension.low, dimension.high, log=dimension.is_log)
