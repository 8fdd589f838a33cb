"""Times by hand, for a machine with round figures."""

from collections import Counter

import pytest

from foveal.studies.plan.hardware import Hardware, Utilization
from foveal.studies.plan.layout import Layout
from foveal.studies.plan.recorder import Message, Operation
from foveal.studies.plan.step_time import bubble, message_seconds, operation_seconds, step_time

MACHINE = Hardware("round", 100.0, 10.0, 1e9, 10.0, 4, 8.0, 4.0, "none")
WHOLE = Utilization(1.0, 1.0, 1.0)


def seconds(message: Message, layout: Layout) -> float:
    return message_seconds(message, layout, MACHINE, WHOLE)


def test_an_operation_takes_its_products_or_its_memory():
    assert operation_seconds(Operation("forward", 1000, 10, True), MACHINE, WHOLE) == 10
    assert operation_seconds(Operation("forward", 1000, 10, False), MACHINE, WHOLE) == 100
    assert operation_seconds(Operation("forward", 10, 1000, True), MACHINE, WHOLE) == 100
    half = Utilization(0.5, 0.25, 1.0)
    assert operation_seconds(Operation("forward", 1000, 10, True), MACHINE, half) == 20
    assert operation_seconds(Operation("forward", 0, 10, True), MACHINE, half) == 4


def test_a_ring_in_a_node_sends_twice_the_size_but_for_its_own_part():
    layout = Layout(4, tp=4)
    assert seconds(Message("forward", "all-reduce", "tp", 800), layout) == 2 * 800 * 3 / 4 / 8
    assert seconds(Message("forward", "all-gather", "tp", 800), layout) == 800 * 3 / 4 / 8
    assert seconds(Message("forward", "all-reduce", "dp", 800), layout) == 0  # a single member


def test_between_nodes_the_processes_of_a_node_share_its_network():
    """Each of four processes has a quarter of 4 bytes a second. A ring of all leaves the node once."""
    alone = Layout(16, tp=4)  # one member of a dp group in each node
    assert seconds(Message("update", "all-reduce", "dp", 800), alone) == 2 * 800 * 3 / 4 / 1
    together = Layout(8)  # four members in each of two nodes
    assert seconds(Message("update", "all-reduce", "dp", 800), together) == 2 * 800 * 7 / 8 / 4
    assert seconds(Message("update", "all-to-all", "dp", 800), together) == 800 * 7 / 8 / 1


def test_a_stage_sends_to_the_next_in_its_node_or_beyond():
    near, far = Layout(4, pp=2), Layout(16, pp=2)
    assert seconds(Message("forward", "send", "pp", 80), near) == 10
    assert seconds(Message("forward", "send", "pp", 80), far) == 80


@pytest.mark.parametrize(("p", "m", "v", "part"), [(1, 1, 1, 0), (4, 8, 1, 3 / 8), (8, 32, 2, 7 / 64)])
def test_the_bubble_is_that_of_the_paper(p, m, v, part):
    """(p - 1) / (v m), Narayanan et al. 2021, section 2.2."""
    assert bubble(Layout(p, pp=p, virtual_stages=v), m) == part


def timed(layout: Layout, micro_batches: int = 1) -> tuple[float, ...]:
    operations = Counter({Operation("forward", 100, 1, True): 3, Operation("update", 0, 20, False): 1})
    messages = Counter(
        {
            Message("forward", "all-gather", "dp", 64): 2,
            Message("update", "all-reduce", "dp", 64): 1,
        }
    )
    time = step_time(operations, messages, layout, micro_batches, MACHINE, WHOLE)
    parts = (time.compute, time.layers, time.bubble, time.gradients, time.update)
    assert time.total == pytest.approx(sum(parts))
    return parts


def test_the_parts_of_a_step_add_up():
    assert timed(Layout(2)) == (3, 8, 0, 8, 2)
    assert timed(Layout(4, pp=2), 4)[2] == (3 + 8) / 4


def test_shared_weights_are_gathered_while_blocks_compute():
    assert timed(Layout(2, fsdp=True))[:2] == (3, 5)
