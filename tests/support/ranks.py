"""Runs a function in several processes, which torch.distributed connects as ranks."""

import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch import distributed as dist

from foveal.distributed.world import Ranks, World

RankFunction = Callable[..., Any]


def run_ranks(size: int, function: RankFunction, *arguments: Any) -> list[Any]:
    """Return what `function(world, *arguments)` returns on each rank. The function is one of a module."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["foveal.training.trainer"])
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(size, mp_context=context) as processes,
    ):
        store = Path(folder) / "store"
        calls = [processes.submit(_call, store, rank, size, function, arguments) for rank in range(size)]
        return [call.result() for call in calls]


def _call(store: Path, rank: int, size: int, function: RankFunction, arguments: tuple[Any, ...]) -> Any:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    try:
        world: World = Ranks(rank, size)
        result = function(world, *arguments)
        world.exchange(None)  # no rank leaves before all are done
        return result
    finally:
        dist.destroy_process_group()
