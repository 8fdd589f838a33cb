"""`foveal.plan` on values in memory."""

import foveal
from tests.support.command_line import TINY_MODEL

TINY = {key: int(value) for key, value in (setting.split("=") for setting in TINY_MODEL)}


def test_a_training_on_values_in_memory_is_planned() -> None:
    texts = [f"the cat number {number} sat on mat number {number * number}" for number in range(80)]
    plan = foveal.plan("lstm", texts, settings=TINY, quiet=True)
    assert plan.memory_bytes > 1000 * plan.parameters
    assert plan.epoch_seconds is not None
    assert plan.epoch_seconds > 0
    assert str(plan).startswith("lstm on this machine: about ")
    assert plan.tensors["gradients"] == 4 * plan.parameters
    assert plan.to_json()["memory"]["free"] == plan.free_bytes
