"""A process among many that do not exist, by torch's fake process group."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import distributed as dist

from foveal.distributed.mesh import MeshRanks
from foveal.distributed.tree import Gradients, TreeSum
from foveal.distributed.world import ONE_PROCESS, Ranks, World
from foveal.studies.plan.layout import Layout
from foveal.studies.plan.torch_parts import fake_store


class _Alone:
    """A process whose messages of Python objects come back to it."""

    processes: int

    def exchange(self, message: Any) -> list[Any]:
        return [message] * self.processes


class _CopyingRanks(_Alone, Ranks):
    """Processes with all weights each."""


class _SplittingRanks(_Alone, MeshRanks):
    """Processes that split each layer."""


class _SharingRanks(_Alone, Ranks):
    """Processes that share the weights. `memory.py` and `messages.py` count what they share."""

    def sum(self, tree: TreeSum[Gradients], weights: Any) -> Gradients:
        return next(iter(tree.nodes.values()))


@contextmanager
def process_of(layout: Layout) -> Iterator[World]:
    """Return a context with the first process of a stage, which gets no true answer from the others."""
    size = layout.dp * layout.tp
    if size == 1:
        yield ONE_PROCESS
        return
    dist.init_process_group("fake", rank=0, world_size=size, store=fake_store())
    try:
        if layout.tp > 1:
            yield _SplittingRanks(0, size, layout.tp)
        else:
            yield (_SharingRanks if layout.fsdp else _CopyingRanks)(0, size)
    finally:
        dist.destroy_process_group()
