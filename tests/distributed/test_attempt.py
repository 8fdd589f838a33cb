"""Ranks that are started again find each other, beside what those before them have left in the store."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from torch._C._distributed_c10d import HashStore, Store

from foveal.core.errors import UserError
from foveal.distributed.attempt import name_attempt

SIZE = 3


def start(store: Store, late: int = -1) -> list[str]:
    """Return the names that the ranks get, of which one is started after the others."""
    with ThreadPoolExecutor(SIZE) as ranks:
        order = [rank for rank in range(SIZE) if rank != late] + ([late] if late >= 0 else [])
        calls = {rank: ranks.submit(name_attempt, store, rank, SIZE, timedelta(seconds=20)) for rank in order}
        return [calls[rank].result() for rank in range(SIZE)]


@pytest.mark.parametrize("late", range(SIZE))
def test_each_start_has_a_name_of_its_own(late: int) -> None:
    store = HashStore()
    names = [start(store, late) for _ in range(3)]
    assert all(len(set(each)) == 1 for each in names)
    assert len({each[0] for each in names}) == 3


def test_a_rank_does_not_wait_forever_for_those_before() -> None:
    store = HashStore()
    start(store)
    with pytest.raises(UserError, match=r"rank 0 has not started within 0.1 s"):
        name_attempt(store, 1, SIZE, timedelta(seconds=0.1))
