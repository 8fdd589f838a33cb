"""Differences of models, paired by seed, and corrected for their number."""

import itertools

import numpy as np
import pytest

from foveal.studies.compare.differences import holm, paired_differences

SPREAD, FROM_SEED = 0.01, 0.03
"""The deviation of a loss around that of its seed, and of the loss that all models have in common with it."""


def losses(*means: float, seeds: int = 5, seed: int = 0) -> dict[str, dict[int, float]]:
    draw = np.random.default_rng(seed)
    common = draw.normal(0, FROM_SEED, seeds)
    return {
        f"model-{number}": dict(enumerate(mean + common + draw.normal(0, SPREAD, seeds)))
        for number, mean in enumerate(means)
    }


def test_holm_multiplies_by_the_tests_that_are_left():
    # Holm 1979: the smallest is multiplied by the number of tests, the next by one less.
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1, 1]
    assert holm([]) == []


def test_equal_runs_are_indistinguishable():
    same = {seed: 2.0 + seed / 10 for seed in range(3)}
    (difference,) = paired_differences({"a": same, "b": dict(same)}, 3)
    assert (difference.verdict, difference.mean.value, difference.p_value) == ("indistinguishable", 0, 1)


def test_five_percent_are_told_apart_with_five_seeds():
    for seed in range(50):
        (difference,) = paired_differences(losses(1.50, 1.575, seed=seed), 3)
        assert (difference.verdict, difference.mean.value < 0) == ("told apart", True)


def test_equal_models_are_told_apart_in_one_comparison_of_twenty():
    wrong = [
        any(each.verdict == "told apart" for each in paired_differences(losses(*[1.5] * 4, seed=seed), 3))
        for seed in range(300)
    ]
    assert np.mean(wrong) < 0.05 + 0.02


def test_only_common_seeds_are_compared():
    of = losses(1.5, 1.6, 1.7)
    del of["model-1"][0]
    of["model-2"] = {4: 1.7, 7: 1.6, 9: 1.8}
    pairs = [(each.first, each.second) for each in paired_differences(of, 3)]
    assert pairs == [("model-0", "model-1")]
    of["model-1"][0] = of["model-2"][0] = of["model-2"][1] = 1.0
    assert len(paired_differences(of, 3)) == len([*itertools.combinations(of, 2)])
