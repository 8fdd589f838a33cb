"""How long trials are in a budget, and the least budget of a study."""

import pytest

from foveal.core.errors import UserError
from foveal.studies.tune.checks import Cost
from foveal.studies.tune.lengths import check_budget, choose_lengths

COST = Cost(
    start_seconds=0.4, step_seconds=0.01, evaluation_seconds=0.1, full_steps=2000, steps_per_epoch=100.0
)


@pytest.mark.parametrize(
    ("budget", "coarse", "refined"), [(400.0, 500, 2000), (100.0, 212, 1150), (20.0, 20, 150)]
)
def test_lengths_follow_from_the_budget(budget, coarse, refined):
    lengths = choose_lengths(COST, budget)
    assert (lengths.coarse, lengths.refined) == (coarse, refined)


def test_a_budget_for_no_trial_is_refused_with_one_that_suffices():
    with pytest.raises(UserError, match=r"--budget 10 s is too little.*give --budget 1m"):
        check_budget(COST, 10.0)
    check_budget(COST, 60.0)
