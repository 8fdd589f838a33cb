"""What one process counts, against the equations of the papers."""

from typing import Any

import pytest

from foveal.studies.plan.layout import Layout
from foveal.studies.plan.planned_model import sized_task
from foveal.studies.plan.rank_step import RankStep, count_step
from foveal.studies.plan.recorder import Message
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of

LAYERS, WIDTH, LENGTH, ROWS, VOCABULARY = 3, 32, 16, 4, 64
TOKENS = ROWS * LENGTH
SETTINGS = (
    f"model.layers={LAYERS}",
    f"model.width={WIDTH}",
    f"data.context_length={LENGTH}",
    f"data.batch_tokens={TOKENS}",
    "model.projection_bias=false",
    "training.precision=float32",
)
BLOCK = 12 * WIDTH**2 + 13 * WIDTH
"""Parameters of a block: four projections and two layers of four times the width, biases, and two norms."""
PARAMETERS = LAYERS * BLOCK + 2 * VOCABULARY * WIDTH + 2 * WIDTH


def counted(layout: Layout = Layout(), *settings: str, preset: str = "attention") -> RankStep:  # noqa: B008
    return count_step(task_for(preset, *SETTINGS, *settings), layout, ROWS)


def task_for(preset: str, *settings: str) -> Any:
    return sized_task(task_of(load_config(preset, settings)), {"vocabulary": VOCABULARY})


def flops(step: RankStep) -> int:
    return sum(each.flops * count for each, count in step.operations.items())


def test_a_single_process_has_all_parameters():
    step = counted()
    assert step.parameters.own == PARAMETERS
    assert step.parameters.blocks == (BLOCK,) * LAYERS
    assert not step.messages


def test_weights_gradients_and_states_take_16_bytes_a_parameter():
    """Rajbhandari et al. 2020, section 3.1, of float32 weights: 4 + 4 + 8."""
    peak = counted().peak
    counters = 4 * len([*range(LAYERS * 16 + 4)])
    assert peak["weights"] == 4 * PARAMETERS
    assert peak["optimizer states"] == pytest.approx(8 * PARAMETERS, abs=counters)
    update = counted(Layout(2)).peak
    assert update["gradients"] == 4 * PARAMETERS


def test_products_are_those_of_the_equation():
    """Three times the forward pass: 2 a weight and token, and 4 T D a token and layer of attention."""
    a_token = 2 * (LAYERS * 12 * WIDTH**2 + VOCABULARY * WIDTH) + LAYERS * 4 * LENGTH * WIDTH
    backward_of_attention = 2.5  # of the forward pass: the kernel computes the weights again
    extra = (backward_of_attention - 2) * LAYERS * 4 * LENGTH * WIDTH
    assert flops(counted()) == pytest.approx(TOKENS * (3 * a_token + extra))


def test_blocks_that_are_computed_again_are_counted_apart():
    plain, again = counted(), counted(Layout(), "training.activation_checkpointing=true")
    assert plain.recomputed_flops == 0
    assert flops(again) - again.recomputed_flops == flops(plain)
    last_product = 2 * 4 * WIDTH**2  # nothing waits for it
    assert again.recomputed_flops == TOKENS * LAYERS * (2 * 12 * WIDTH**2 - last_product + 4 * LENGTH * WIDTH)
    assert again.kept < plain.kept / 3


def vectors_sent(step: RankStep) -> dict[str, int]:
    """Return how often all vectors are sent in split layers."""
    return {
        f"{each.collective} {each.phase}": count
        for each, count in step.messages.items()
        if each.group == "tp" and each.size == 4 * TOKENS * WIDTH
    }


def test_split_layers_gather_and_scatter_four_times_a_layer():
    """Korthikanti et al. 2022, section 4.2.2: two gathers and two sums forward, and backward, where the
    inputs of two products are gathered again. The embedding is one more sum, the output one more gather."""
    step = counted(Layout(2, tp=2))
    assert vectors_sent(step) == {
        "all-gather forward": 2 * LAYERS + 1,
        "reduce-scatter forward": 2 * LAYERS + 1,
        "all-reduce backward": 1,
        "all-gather backward": 4 * LAYERS + 1,
        "reduce-scatter backward": 2 * LAYERS,
    }
    split = LAYERS * (12 * WIDTH**2 + 7 * WIDTH) + 2 * VOCABULARY * WIDTH
    assert step.parameters.own == PARAMETERS - split // 2
    # The second computation ends before the last sum of each block, whose result nothing waits for.
    again = vectors_sent(counted(Layout(2, tp=2), "training.activation_checkpointing=true"))
    assert again["all-gather backward"] == 4 * LAYERS + 1
    assert again["reduce-scatter backward"] == 3 * LAYERS


@pytest.mark.parametrize("settings", [(), ("training.activation_checkpointing=true",)])
def test_split_layers_keep_their_part_of_the_activations(settings):
    """Korthikanti et al. 2022, table 2: s b h (34 + 5 a s / h) / t bytes a layer."""
    whole, split = (counted(Layout(tp, tp=tp), "model.dropout=0.1", *settings).kept for tp in (1, 4))
    assert split == pytest.approx(whole / 4, rel=0.02)


@pytest.mark.parametrize(("precision", "number"), [("float32", 4), ("bfloat16", 2)])
def test_shared_weights_of_products_are_gathered_as_products_read_them(precision, number):
    step = counted(Layout(2, fsdp=True), f"training.precision={precision}")
    norms = 4 * WIDTH
    assert step.parameters.gathered_blocks == (number * (BLOCK - norms) + 4 * norms,) * LAYERS
    outside = step.parameters.gathered - sum(step.parameters.gathered_blocks)
    assert outside == number * VOCABULARY * WIDTH + 4 * (VOCABULARY + 2) * WIDTH  # projection; table and norm


def test_copies_send_their_gradients_once():
    step = counted(Layout(4))
    assert {each.collective for each in step.messages} == {"all-to-all", "all-gather"}
    for message, count in step.messages.items():
        assert (message.phase, message.group, count) == ("update", "dp", 1)
        assert message.size == pytest.approx(4 * PARAMETERS, rel=0.01)


def test_micro_batches_multiply_the_work_but_not_the_update():
    one, five = counted(), counted(Layout(micro_batches=5))
    assert five.micro_batches == 5
    assert flops(five) == 5 * flops(one)
    updates = [each for each in one.operations if each.phase == "update"]
    largest = max(updates, key=lambda operation: operation.moved)
    assert five.operations[largest] == one.operations[largest] == 1


def test_experts_get_equal_numbers_of_vectors():
    """Two of eight experts compute a vector, whatever process has the weights."""
    settings = ("model.experts.count=8", "model.expansion=2")
    alone = counted(Layout(8), *settings, preset="moe")
    shared = counted(Layout(8, ep=4), *settings, preset="moe")
    experts = LAYERS * 8 * 2 * 2 * WIDTH**2
    assert alone.parameters.experts == experts
    assert shared.parameters.experts == experts // 4
    assert alone.parameters.own - shared.parameters.own == experts - experts // 4
    assert flops(shared) == flops(alone)
    assert shared.routed == LAYERS * 2 * TOKENS * WIDTH * 2


def test_parameters_grow_with_all_experts_and_operations_with_those_that_compute():
    """The router aside, and neither with attention or embedding."""
    sizes = ((8, 2), (4, 2), (8, 1))
    settings = [(f"model.experts.count={count}", f"model.experts.top_k={active}") for count, active in sizes]
    eight, four, single = (counted(Layout(), *each, "model.expansion=2", preset="moe") for each in settings)
    expert, router = 2 * 2 * WIDTH**2, WIDTH
    assert eight.parameters.own - four.parameters.own == LAYERS * 4 * (expert + router)
    assert flops(eight) - flops(four) == 3 * 2 * TOKENS * LAYERS * 4 * router
    assert flops(eight) - flops(single) == 3 * 2 * TOKENS * LAYERS * expert


def test_half_weights_have_half_messages():
    import torch

    task = task_for("attention", *SETTINGS[:-1], "training.precision=bfloat16")
    step = count_step(task, Layout(2, tp=2), ROWS, torch.bfloat16)
    assert step.peak["weights"] == 2 * step.parameters.own
    assert step.messages[Message("forward", "all-gather", "tp", 2 * TOKENS * WIDTH)] == 2 * LAYERS + 1
