"""`foveal.plan` on values in memory, and of many processes."""

import json

import pytest

import foveal
from foveal.api.results.counted_plan import CountedPlan
from foveal.api.results.machine_plan import MachinePlan
from foveal.ui.console import sections_text
from tests.support.command_line import TINY_MODEL, succeed

TINY = {key: int(value) for key, value in (setting.split("=") for setting in TINY_MODEL)}


def test_a_training_on_values_in_memory_is_planned() -> None:
    texts = [f"the cat number {number} sat on mat number {number * number}" for number in range(80)]
    plan = foveal.plan("lstm", texts, settings=TINY, quiet=True)
    assert isinstance(plan, MachinePlan)
    assert plan.memory_bytes > 1000 * plan.parameters
    assert plan.epoch_seconds is not None
    assert plan.epoch_seconds > 0
    assert repr(plan) == str(plan) == sections_text(plan.sections())
    assert str(plan).startswith("lstm on this machine: about ")
    assert "<caption>tensors of a step at its peak</caption>" in plan._repr_html_()
    assert plan.tensors["gradients"] == 4 * plan.parameters
    assert plan.to_json()["memory"]["free"] == plan.free_bytes


def test_many_processes_are_counted_as_the_command_counts_them() -> None:
    small = {"model.layers": 2, "model.width": 32, "data.context_length": 16, "data.batch_tokens": 64}
    # DTensor tries two operations at their first time in a process, which are counted then.
    foveal.plan("attention", ranks=4, tp=2, hardware="a100", settings=small)
    plan = foveal.plan("attention", ranks=4, tp=2, hardware="a100", settings=small)
    assert isinstance(plan, CountedPlan)
    settings = [f"{key}={value}" for key, value in small.items()]
    arguments = "plan", "attention", *settings, "--ranks", 4, "--tp", 2, "--hardware", "a100"
    assert plan.to_json() == json.loads(succeed(*arguments, "--json").out)
    assert repr(plan).split() == succeed(*arguments).out.split()
    assert str(plan).startswith("attention on 4 x a100: fits (0.0 of 80 GB), ")
    assert plan.memory_bytes == sum(plan.plan.memory.values())
    assert plan.payload().title == plan.verdict
    shown = plan._repr_html_()
    assert "<caption>messages of a process in a step</caption>" in shown
    assert "data:image/png;base64," in shown


def test_a_network_is_counted_on_the_usual_hardware_beside_what_is_published() -> None:
    plan = foveal.plan("resnet-18", settings={"data.image.batch_size": 2})
    assert isinstance(plan, CountedPlan)
    assert (plan.parameters, plan.plan.hardware.name) == (11_689_512, "h100")
    assert plan.to_json()["published"]["multiplications"] == 1_800_000_000
    assert plan.to_json()["forward_multiplications"] == 1_814_073_344
    assert plan.to_json()["trainings"]["published"]["tokens"] == 600_000 * 256
    with pytest.raises(foveal.UserError, match="price_per_hour: the budget 3m is no number of steps"):
        foveal.plan("attention", price_per_hour=2.5)


def test_the_reached_part_of_the_peak_can_be_given() -> None:
    """Products of matrices take the other part of the time; the rest is that of the memory."""
    usual, slow = (
        foveal.plan("attention", hardware="p100", utilization=utilization) for utilization in (None, 0.1)
    )
    assert isinstance(usual, CountedPlan)
    assert isinstance(slow, CountedPlan)
    assert slow.step_seconds > usual.step_seconds
    assert slow.plan.flops / (21.2e12 * 0.1) < slow.step_seconds < usual.step_seconds * 6.6
    assert "10% of 21 TFLOP/s in 16 bits" in str(slow)


def test_what_does_not_fit_is_said_in_words_of_python() -> None:
    for arguments, message in (
        ({"model": "lstm"}, "in one process: add data=DATA"),
        ({"model": "attention", "hardware": "h10"}, 'hardware="h10": unknown'),
        ({"model": "attention", "ranks": 6, "tp": 4}, "ranks=6: not a multiple of tp=4 x pp=1"),
        ({"model": "attention", "text": "x"}, 'text: is read for hardware="this-machine" alone'),
        ({"model": "attention", "data": ["a"], "ranks": 2}, "ranks: this machine is measured in one process"),
        (
            {"model": "attention", "hardware": "this-machine"},
            "not a run, so the data are needed: add data=DATA",
        ),
    ):
        with pytest.raises(foveal.UserError) as refused:
            foveal.plan(**arguments)
        assert message in str(refused.value)
