"""Which trial of a study is taken."""

import pytest

from foveal.studies.tune.choice import (
    NOTHING_MISSING,
    best_trial,
    missing_regularization,
    recommended_trial,
)
from foveal.studies.tune.journal import Origin, State, Trial


def trial(
    number: int, origin: Origin, loss: float | None, state: State = "finished", **settings: str
) -> Trial:
    return Trial("refined", number, origin, "", settings, 100, state, loss)


def test_the_lowest_loss_is_taken_or_one_as_good_with_fewer_changes() -> None:
    trials = [trial(0, "given", 1.004), trial(1, "drawn", 1.0, lr="1"), trial(2, "drawn", 0.5, "stopped")]
    assert best_trial(trials, NOTHING_MISSING) == trials[0]
    assert best_trial(trials[1:], NOTHING_MISSING) == trials[1]
    assert best_trial(trials[2:], NOTHING_MISSING) is None
    assert best_trial([trial(0, "given", -1.0), trial(1, "drawn", -1.1, lr="1")], NOTHING_MISSING) == trial(
        1, "drawn", -1.1, lr="1"
    )


@pytest.mark.parametrize(
    ("steps", "loss", "taken"),
    [
        (99, 1.02, 1),
        (99, 1.021, 0),
        (99, 0.9, 1),
        (50, 1.039, 1),
        (50, 1.041, 0),
        (10, 1.099, 1),
        (10, 1.101, 0),
    ],
)
def test_regularization_that_is_missing_is_taken_if_little_is_lost(
    steps: int, loss: float, taken: int
) -> None:
    """Of 100 steps of a whole training. The shorter the trials, the less they say."""
    trials = [trial(0, "corrected", 1.0, lr="1"), trial(1, "preset", loss, lr="1", dropout="0.3")]
    assert best_trial(trials, missing_regularization({"dropout": "0.3"}, steps, 100)) == trials[taken]
    assert best_trial(trials, missing_regularization({"decay": "0.3"}, steps, 100)) == trials[loss < 1]


@pytest.mark.parametrize(("new_seeds", "taken"), [((0.93, 0.95), 2), ((0.95, 1.07), 0), ((1.2,), 0), ((), 2)])
def test_searched_settings_have_to_be_better_with_new_seeds(new_seeds: tuple[float, ...], taken: int) -> None:
    """The lowest of several losses is partly luck."""
    trials = [trial(0, "given", 1.0), trial(1, "preset", 1.1, lr="2"), trial(2, "drawn", 0.9, lr="3")]
    best = best_trial(trials, NOTHING_MISSING)
    assert best == trials[2]
    assert recommended_trial(best, trials, NOTHING_MISSING, new_seeds) == trials[taken]


def test_whole_trainings_show_what_regularization_is_worth() -> None:
    assert missing_regularization({"dropout": "0.3"}, 100, 100) == NOTHING_MISSING


def test_settings_that_were_not_searched_need_no_new_seeds() -> None:
    trials = [trial(0, "given", 1.0), trial(1, "preset", 0.9, lr="2")]
    assert recommended_trial(trials[1], trials, NOTHING_MISSING, (5.0, 5.0)) == trials[1]
    drawn = trial(2, "drawn", 0.9, lr="3")
    assert recommended_trial(drawn, [drawn], NOTHING_MISSING, (5.0, 5.0)) == drawn
