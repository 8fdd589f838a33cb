"""Scores of walks: the means, of all and of any selection."""

import numpy as np
import pytest

from foveal.tasks.navigation.metrics import path_moves, spl, success

ARRIVED, SHORTEST, TAKEN = [True, True, False, True], [4, 4, 2, 5], [4, 8, 2, 5]


def test_means_of_all_and_of_some() -> None:
    found = success(ARRIVED), spl(ARRIVED, SHORTEST, TAKEN), path_moves(TAKEN)
    assert [score.name for score in found] == ["success", "spl", "moves"]
    assert [score.value for score in found] == pytest.approx([0.75, 2.5 / 4, 19 / 4])
    assert [score.on_rows(np.array([1, 2])) for score in found] == pytest.approx([0.5, 0.25, 5])
    assert [score.higher_is_better for score in found] == [True, True, False]
    np.testing.assert_allclose(found[1].per_example, [1, 0.5, 0, 1])
