"""Each rank has a GPU of its own. There need be none here: CUDA is simulated."""

from collections.abc import Callable
from typing import Any, NoReturn

import pytest
import torch

from foveal.core.errors import UserError
from foveal.core.rank_device import name_for_run
from foveal.core.runtime import resolve_device
from foveal.distributed import world
from foveal.distributed.world import joined_world

Rank = Callable[..., None]


@pytest.fixture
def become_rank(monkeypatch: pytest.MonkeyPatch) -> Rank:
    def become(gpus: int, **variables: object) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))

    return become


@pytest.mark.parametrize("name", ["auto", "cuda"])
def test_each_rank_has_its_own_gpu(become_rank: Rank, name: str) -> None:
    become_rank(2, WORLD_SIZE=4, RANK=3, LOCAL_RANK=1, LOCAL_WORLD_SIZE=2)
    device = resolve_device(name)
    assert device == torch.device("cuda", 1)
    assert name_for_run(device) == "cuda"


def test_a_process_alone_and_ranks_without_gpus_are_as_before(become_rank: Rank) -> None:
    become_rank(2)
    assert str(resolve_device("auto")) == name_for_run(resolve_device("cuda")) == "cuda"
    assert name_for_run(resolve_device("cuda:1")) == "cuda:1"
    become_rank(1, WORLD_SIZE=4, RANK=3, LOCAL_RANK=3, LOCAL_WORLD_SIZE=4)
    assert str(resolve_device("cpu")) == "cpu"
    become_rank(0, WORLD_SIZE=4, RANK=3, LOCAL_RANK=3, LOCAL_WORLD_SIZE=4)
    assert str(resolve_device("auto")) == "cpu"
    with pytest.raises(UserError, match="--device cuda: this machine's PyTorch sees no CUDA device"):
        resolve_device("cuda")


@pytest.mark.parametrize(
    ("gpus", "name", "variables", "message"),
    [
        (1, "auto", {"LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 4}, "this machine has 1 GPU, and 4 processes, wh"),
        (2, "cuda", {"LOCAL_RANK": 2}, "this machine has 2 GPUs, and 3 processes, which need one each: star"),
        (2, "auto", {}, "set LOCAL_RANK to the number of this rank on its machine, from 0, as torchrun does"),
        (2, "cuda:1", {"LOCAL_RANK": 0}, "each rank has a GPU of its own: use cuda; CUDA_VISIBLE_DEVICES"),
    ],
)
def test_a_rank_without_a_gpu(
    become_rank: Rank, gpus: int, name: str, variables: dict[str, Any], message: str
) -> None:
    become_rank(gpus, WORLD_SIZE=4, RANK=0, **variables)
    with pytest.raises(UserError) as refusal:
        resolve_device(name)
    assert str(refusal.value).startswith(f"--device {name}: {message}")


class JoinedError(Exception):
    """Ranks would join now."""


@pytest.mark.parametrize(("gpus", "expected"), [(2, [1]), (1, []), (0, [])])
def test_the_gpu_is_chosen_before_the_ranks_join(
    become_rank: Rank, monkeypatch: pytest.MonkeyPatch, gpus: int, expected: list[int]
) -> None:
    """A rank on the CPU of a machine with fewer GPUs chooses none."""
    become_rank(gpus, WORLD_SIZE=2, RANK=1, LOCAL_RANK=1, LOCAL_WORLD_SIZE=2)
    chosen: list[int] = []

    def join() -> NoReturn:
        assert chosen == expected
        raise JoinedError

    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.setattr(world, "join_store", join)
    with pytest.raises(JoinedError), joined_world(print):
        pass
