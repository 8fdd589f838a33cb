"""What a plan adds to the step that it counts: shared weights, stages and experts."""

from collections import Counter

import pytest

from foveal.studies.plan.layout import Layout
from foveal.studies.plan.memory import micro_batches_in_flight, peak_memory
from foveal.studies.plan.messages import all_messages
from foveal.studies.plan.rank_step import Parameters, RankStep
from foveal.studies.plan.recorder import MemoryKind, Message

BLOCKS, OUTSIDE = (1000, 1000, 1000), 500
WHOLE = sum(BLOCKS) + OUTSIDE


def step(micro_batches: int = 1, experts: int = 0, number: int = 4, **messages: int) -> RankStep:
    """Return a step. The numbers of gathered blocks have so many bytes."""
    sent = Counter({Message("update", name, "dp", size): 1 for name, size in messages.items()})
    peak: Counter[MemoryKind] = Counter(
        {"weights": 4 * WHOLE, "optimizer states": 8 * WHOLE, "activations": 100}
    )
    gathered = tuple(number * each for each in BLOCKS)
    parameters = Parameters(WHOLE, experts, BLOCKS, WHOLE // 2, sum(gathered) + 4 * OUTSIDE, gathered)
    return RankStep(parameters, 64, 16, micro_batches, 20, 30, 40, 0, peak, Counter(), sent)


def test_shared_weights_send_three_times_their_size():
    """Rajbhandari et al. 2020, section 7.2: gathered twice, and their gradients summed once."""
    messages = all_messages(step(), Layout(2, fsdp=True), recomputes=False)
    sent = sum(message.size * count for message, count in messages.items())
    assert sent == 4 * (3 * sum(BLOCKS) + 2 * OUTSIDE)  # what is outside stays whole from forward to backward
    twice = all_messages(step(2), Layout(2, fsdp=True), recomputes=False)
    assert sum(message.size * count for message, count in twice.items()) == 2 * sent


def test_shared_weights_are_held_in_parts_and_whole_where_they_compute():
    memory = peak_memory(step(), Layout(2, fsdp=True))
    assert memory == {
        "weights": 2 * WHOLE,
        "gradients": 2 * WHOLE,
        "optimizer states": 4 * WHOLE,
        "copies of weights": 4 * (OUTSIDE + 2 * 1000),
        "working space": 4 * (OUTSIDE + 1000),
        "activations": 100,
    }


def test_blocks_in_bfloat16_are_gathered_with_half_of_the_bytes():
    """Their gradients are summed in float32."""
    messages = all_messages(step(number=2), Layout(2, fsdp=True), recomputes=False)
    sent = sum(message.size * count for message, count in messages.items())
    assert sent == (2 * 2 + 4) * sum(BLOCKS) + 2 * 4 * OUTSIDE
    memory = peak_memory(step(number=2), Layout(2, fsdp=True))
    assert memory["copies of weights"] == 4 * OUTSIDE + 2 * 2 * 1000
    assert memory["working space"] == 4 * (OUTSIDE + 1000)


def test_stages_send_vectors_and_gradients():
    messages = all_messages(step(8), Layout(4, pp=4, virtual_stages=2), recomputes=False)
    assert messages == {Message("forward", "send", "pp", 20): 16, Message("backward", "send", "pp", 20): 16}


@pytest.mark.parametrize(
    ("p", "v", "m", "waiting"), [(1, 1, 8, 1), (4, 1, 8, 4), (4, 1, 2, 2), (4, 2, 64, 4 * (1 + 3 / 8))]
)
def test_the_first_stage_holds_as_many_micro_batches_as_there_are_stages(p, v, m, waiting):
    layout = Layout(p, pp=p, virtual_stages=v)
    assert micro_batches_in_flight(layout, m) == waiting
    assert peak_memory(step(m), layout)["activations"] == 100 + round(30 * (waiting - 1))


@pytest.mark.parametrize(("recomputes", "backward"), [(False, 2), (True, 4)])
def test_vectors_go_to_their_experts_and_back(recomputes, backward):
    messages = all_messages(step(), Layout(4, ep=2), recomputes)
    assert messages == {
        Message("forward", "all-to-all", "ep", 40): 2,
        Message("backward", "all-to-all", "ep", 40): backward,
    }


def test_gradients_of_experts_are_summed_among_their_copies():
    layout = Layout(8, ep=4)
    messages = all_messages(step(experts=500, **{"all-gather": 4 * WHOLE}), layout, recomputes=False)
    assert messages[Message("update", "all-gather", "dp", 4 * (WHOLE - 500))] == 1
    assert messages[Message("update", "all-gather", "dp of experts", 4 * 500)] == 1
    assert list(layout.members("dp of experts")) == [0, 4]
