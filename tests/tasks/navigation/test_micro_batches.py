"""Micro-batches of maps of several sizes equal one big batch."""

from random import Random

from foveal.tasks.navigation.generated_episodes import random_episode
from foveal.tasks.navigation.objective import NavigationObjective
from tests.support.micro_batches import check_same_step
from tests.support.navigation_episodes import CORRIDOR, LONGER, encode_episodes, episode_batch, small_agent


def test_walks_on_maps_of_several_sizes() -> None:
    chance = Random(3)
    rows = [LONGER, CORRIDOR, *(random_episode(chance) for _ in range(3))]
    whole, inputs = encode_episodes(*rows)
    parts = [encode_episodes(*some, processor=inputs)[0] for some in (rows[:2], rows[2:])]
    shapes = [episode_batch(part).columns[name].shape[1:] for part in parts for name in ("map", "target")]
    assert len({*shapes}) == 4
    tasks = [NavigationObjective(small_agent(inputs).double(), inputs.target.length_limit) for _ in range(2)]
    check_same_step(tasks, [episode_batch(part) for part in parts], episode_batch(whole))
