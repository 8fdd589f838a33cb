"""Ranks exchange messages and tensors, and add up gradients in one order."""

import os
import socket
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from foveal.distributed.tree import Node, TreeSum, add_gradients
from foveal.distributed.world import MESSAGE_BYTES, ONE_PROCESS, Ranks, World, joined_world, own_slots
from tests.support.ranks import run_ranks

WEIGHTS = [torch.zeros(5, 7), torch.zeros(3), torch.zeros(11)]


def exchange_all(world: World, lengths: list[int]) -> list[Any]:
    return [world.exchange(str(world.rank) * (length + world.rank)) for length in lengths]


def test_messages_come_in_the_order_of_the_ranks() -> None:
    lengths = [0, 1, MESSAGE_BYTES, 3 * MESSAGE_BYTES]
    expected = [[str(rank) * (length + rank) for rank in range(3)] for length in lengths]
    assert run_ranks(3, exchange_all, lengths) == [expected] * 3
    assert ONE_PROCESS.exchange("alone") == ["alone"]


def gather_ranks(world: World) -> Tensor:
    return world.gather(torch.full((2, 3), float(world.rank)))


def test_tensors_are_gathered_in_the_order_of_the_ranks() -> None:
    expected = torch.arange(2.0)[:, None, None].expand(2, 2, 3)
    for gathered in run_ranks(2, gather_ranks):
        assert torch.equal(gathered, expected)


def gradients_of(slot: int) -> list[Tensor | None]:
    """Return gradients whose sum depends on the order. The last weight is used by slot 2 alone."""
    generator = torch.Generator().manual_seed(slot)
    numbers = [torch.randn(weight.shape, generator=generator) * 10.0**slot for weight in WEIGHTS]
    return [numbers[0], numbers[1], numbers[2] if slot == 2 else None]


def add_up(world: World, slots: int) -> list[Tensor | None]:
    tree = TreeSum(slots, add_gradients)
    for slot in own_slots(slots, world.rank, world.size):
        tree.add(Node(0, slot), gradients_of(slot))
    return world.sum(tree, WEIGHTS)


@pytest.mark.parametrize(("slots", "size"), [(4, 2), (4, 4), (6, 2), (6, 3)])
def test_a_sum_has_the_bits_of_one_process(slots: int, size: int) -> None:
    expected = add_up(ONE_PROCESS, slots)
    for total in run_ranks(size, add_up, slots):
        for one, other in zip(expected, total, strict=True):
            assert one is not None
            assert other is not None
            assert torch.equal(one, other)
    unused = run_ranks(2, add_up, 2)
    assert all(total[2] is None for total in unused)


class SlowRanks(Ranks):
    """Ranks of which the last still connects when the others are done."""

    def __init__(self, rank: int, size: int):
        super().__init__(rank, size)
        if rank == size - 1:
            time.sleep(0.5)
            Path(os.environ["CONNECTED"]).touch()


def find_connected(rank: int, port: int, connected: Path) -> bool:
    """Join as a rank of two. Return whether the last one has connected by then."""
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="localhost", MASTER_PORT=str(port))
    os.environ["CONNECTED"] = str(connected)
    with joined_world(print, ranks=SlowRanks) as world:
        found = connected.exists()
        world.exchange(None)
        return found


def test_no_rank_can_leave_while_another_still_connects(tmp_path: Path) -> None:
    """The other one would see a closed connection, and call that an error of ours."""
    with socket.create_server(("", 0)) as listener:
        port = listener.getsockname()[1]
    with ProcessPoolExecutor(2, mp_context=get_context("forkserver")) as processes:
        ranks = [processes.submit(find_connected, rank, port, tmp_path / "connected") for rank in range(2)]
        assert [rank.result() for rank in ranks] == [True, True]
