"""The settings that are searched, and where they are drawn."""

import math

import pytest

from foveal.core.errors import UserError
from foveal.studies.tune.sampler import draw_settings
from foveal.studies.tune.space import search_space
from foveal.tasks.config import load_config

CONFIG = load_config("lstm", ["optimizer.lr=0.3", "model.dropout=0.0"])
LRS = (0.0012, 0.0015, 0.002, 0.0025, 0.003, 0.01, 0.02, 0.03)


def test_only_settings_that_are_read_are_searched():
    names = [dimension.name for dimension in search_space(CONFIG, 0.01, ())]
    assert names == ["optimizer.lr", "model.dropout", "optimizer.weight_decay"]
    assert [each.name for each in search_space(CONFIG, 0.01, ("model.dropout",))] == ["model.dropout"]
    with pytest.raises(UserError, match=r"did you mean 'optimizer\.lr'"):
        search_space(CONFIG, 0.01, ("optimizer.lt",))


def test_settings_are_drawn_where_the_best_trials_were():
    space = search_space(CONFIG, 0.01, ())
    names = [dimension.name for dimension in space]
    tried = [({names[0]: lr, names[1]: 0.2, names[2]: 0.1}, abs(math.log10(lr / 0.002))) for lr in LRS]
    draws = [float(draw_settings(space, tried, seed)["optimizer.lr"]) for seed in range(12)]
    blind = [float(draw_settings(space, (), seed)["optimizer.lr"]) for seed in range(12)]
    distance = [sum(abs(math.log10(lr / 0.002)) for lr in drawn) for drawn in (draws, blind)]
    assert distance[0] < distance[1]


def test_values_outside_of_a_range_are_drawn_inside():
    dropout = search_space(CONFIG, 0.01, ("model.dropout",))[0].around(0.9)
    assert 0 <= dropout.low < dropout.high == 0.5
    assert float(draw_settings((dropout,), (), 0)["model.dropout"]) <= 0.5
