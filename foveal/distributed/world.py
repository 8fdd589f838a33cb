"""The processes that train together, the ranks, and what they tell each other.

A single process is a world of its own, which tells itself everything at once.
"""

import pickle
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.distributed_c10d import PrefixStore

from foveal.core.log import Log
from foveal.core.rank import world_size
from foveal.core.rank_device import use_gpu_of_rank
from foveal.core.signals import signals_end_at_once
from foveal.core.state import State
from foveal.distributed.attempt import name_attempt
from foveal.distributed.heartbeat import heartbeat
from foveal.distributed.joining import TIMEOUT, join_store
from foveal.distributed.placement import WHOLE_WEIGHTS, Placement
from foveal.distributed.tree import Gradients, TreeSum, flatten, largest_nodes, unflatten

MESSAGE_BYTES = 4096
"""The size of a message that takes one exchange. A longer message takes two."""


RESUMES = "foveal resume goes on from the last checkpoint"
LOST_CONNECTION = re.compile("connection|timed out|broken pipe|socket", re.IGNORECASE)
"""The words of gloo and NCCL for a rank that is gone."""
LOST_RANK_SECONDS = 1.0
"""How long a rank waits that another rank has left, so that the launcher sees first why that rank ended."""
LOST_RANK_CODE = 3
"""The exit code of a rank that another rank has left. That rank, or its launcher, says why."""


class RankLost(SystemExit):
    """Another rank has ended in the middle of the work."""

    def __init__(self) -> None:
        super().__init__(LOST_RANK_CODE)


def lost_rank() -> RankLost:
    """Return the error that ends this rank, once the launcher has seen why another one ended."""
    time.sleep(LOST_RANK_SECONDS)
    return RankLost()


class World:
    """A single process.

    A rank computes rows of batches. Where several processes split a model, these are one rank together.
    """

    rank = 0
    size = 1
    processes = 1
    """The number of all processes."""
    shares_weights = False
    """Whether each process holds a part of the weights. Then all compute at the same time, or none does."""
    runs_slots_together = False
    """Whether the slots of a rank pass through several processes at the same time."""

    @property
    def process(self) -> int:
        """The number of this process among those that train together."""
        return self.rank

    @property
    def layout(self) -> str:
        """The options by which processes share a model so that the sums of a step have another order than in
        one process; empty if the bits are those of one process."""
        return ""

    @property
    def is_main(self) -> bool:
        """Return whether this process prints, and writes the files of the run."""
        return self.process == 0

    def by_rank(self, messages: list[Any]) -> list[Any]:
        """Return one message of each rank, from those of all processes."""
        return messages

    def check(self, new_model: Callable[[], nn.Module]) -> str:
        """Check that the processes can share a model, before there is one. Return what the user should know
        of it; empty if nothing.

        Raises: UserError: they can't.
        """
        return ""

    def check_micro_batches(self, count: int) -> None:
        """Check that the processes of a rank can share the micro-batches of its slots in a step.

        Raises: UserError: they can't.
        """

    def join_carries(self, carries: list[list[State]]) -> list[list[State]]:
        """Return the carries of each rank, from those of all processes."""
        return self.by_rank(carries)

    def place(self, model: nn.Module, compute: Callable[..., Any]) -> Placement:
        """Return which numbers of the model's weights this process holds. The others are freed.
        `compute` passes a row of data through the model, or `compute(by_reference=True)` by operations that
        can be counted."""
        return WHOLE_WEIGHTS

    def exchange(self, message: Any) -> list[Any]:
        """Return the messages of all processes, in their order. All call this at the same place."""
        return [message]

    def gather(self, tensor: Tensor) -> Tensor:
        """Return the tensors of all ranks (R, ...), which have one shape."""
        return tensor[None]

    def sum(self, tree: TreeSum[Gradients], weights: Sequence[Tensor]) -> Gradients:
        """Return the sum of the slots of all ranks, in the order of the tree. `weights` have the gradients'
        shapes."""
        return tree.total()


class Ranks(World):
    """Several processes, which torch.distributed connects."""

    def __init__(self, rank: int, size: int, group: dist.ProcessGroup | None = None):
        self.rank, self.size, self.processes, self.group = rank, size, size, group

    def exchange(self, message: Any) -> list[Any]:
        content = pickle.dumps(message)
        sizes, buffers = self._gather_bytes(content, MESSAGE_BYTES)
        if max(sizes) > MESSAGE_BYTES:
            _, buffers = self._gather_bytes(content, max(sizes))
        return [pickle.loads(buffer[:size]) for size, buffer in zip(sizes, buffers, strict=True)]

    def gather(self, tensor: Tensor) -> Tensor:
        everyone = tensor.new_empty((self.size, *tensor.shape))
        with lost_rank_ends():
            dist.all_gather_single(everyone, tensor[None].contiguous(), self.group)
        return everyone

    def broadcast(self, tensor: Tensor, rank: int) -> Tensor:
        """Return the tensor of a rank, in the storage of the own one."""
        source = rank if self.group is None else dist.get_global_rank(self.group, rank)
        with lost_rank_ends():
            dist.broadcast(tensor, source, self.group)
        return tensor

    def all_reduce(self, tensor: Tensor) -> Tensor:
        """Return the sum of the tensors of all ranks, in the storage of the own one."""
        with lost_rank_ends():
            dist.all_reduce(tensor, group=self.group)
        return tensor

    def all_to_all(self, rows: Tensor, sent: list[int], received: list[int]) -> Tensor:
        """Return the rows that the ranks send to this one, which sends `sent[r]` rows to rank r, in order."""
        arrived = rows.new_empty(sum(received), *rows.shape[1:])
        with lost_rank_ends():
            dist.all_to_all_single(arrived, rows.contiguous(), received, sent, self.group)
        return arrived

    def sum(self, tree: TreeSum[Gradients], weights: Sequence[Tensor]) -> Gradients:
        if self.size == 1:
            return tree.total()
        nodes = [
            largest_nodes(tree.slots, own_slots(tree.slots, rank, self.size)) for rank in range(self.size)
        ]
        length = sum(weight.numel() for weight in weights) + len(weights)
        chunk = -(-length // self.size)
        sent = weights[0].new_zeros(len(nodes[self.rank]), self.size * chunk)
        for row, node in zip(sent, nodes[self.rank], strict=True):
            row[:length] = flatten(tree.nodes[node], weights)
        counts = [len(each) * chunk for each in nodes]
        by_rank = sent.view(len(sent), self.size, chunk).transpose(0, 1).reshape(-1)
        received = self.all_to_all(by_rank, [len(sent) * chunk] * self.size, counts)
        whole = TreeSum(tree.slots, Tensor.add_)
        parts = received.view(-1, chunk)
        for node, part in zip((node for each in nodes for node in each), parts, strict=True):
            whole.add(node, part)
        return unflatten(self.gather(whole.total()).view(-1)[:length], weights)

    def _gather_bytes(self, content: bytes, capacity: int) -> tuple[list[int], list[bytes]]:
        """Return the lengths of the messages of all ranks, and their first `capacity` bytes."""
        buffer = torch.zeros(8 + capacity, dtype=torch.uint8)
        buffer[:8] = torch.frombuffer(bytearray(len(content).to_bytes(8, "little")), dtype=torch.uint8)
        head = bytearray(content[:capacity])
        buffer[8 : 8 + len(head)] = torch.frombuffer(head, dtype=torch.uint8)
        rows = [bytes(row.numpy()) for row in self.gather(buffer)]
        return [int.from_bytes(row[:8], "little") for row in rows], [row[8:] for row in rows]


ONE_PROCESS = World()
MakeRanks = Callable[[int, int], Ranks]
"""Makes the world of a process from its number and the number of all."""


def own_slots(slots: int, rank: int, size: int) -> range:
    """Return the slots that a rank computes: an equal number each, in the order of the ranks."""
    each = slots // size
    return range(rank * each, (rank + 1) * each)


@contextmanager
def lost_rank_ends() -> Iterator[None]:
    """Return a context for an exchange, which another rank may have left.

    Raises: RankLost: another rank has ended.
    """
    try:
        yield
    except RuntimeError as error:  # gloo has no type of its own
        if not LOST_CONNECTION.search(str(error)):
            raise
        raise lost_rank() from error


@contextmanager
def joined_world(log: Log, advice: str = RESUMES, ranks: MakeRanks = Ranks) -> Iterator[World]:
    """Return a context in which this process is connected with the other ranks, if there are any. A rank that
    freezes is logged, with what to do then.

    Raises: UserError: the ranks do not find each other.
    Raises: RankLost: another rank has ended.
    """
    if world_size() == 1:
        yield ONE_PROCESS
        return
    backend = "gloo"
    if torch.cuda.is_available():
        backend = "cpu:gloo,cuda:nccl"
        use_gpu_of_rank()
    with lost_rank_ends():
        store, rank, size = join_store()
        with signals_end_at_once():
            attempt = name_attempt(store, rank, size, TIMEOUT)
            group = PrefixStore(f"{attempt}/group", store)
            dist.init_process_group(backend, store=group, rank=rank, world_size=size, timeout=TIMEOUT)
    signs = PrefixStore(f"{attempt}/heartbeat", store.clone())  # type: ignore[attr-defined]
    try:
        with heartbeat(signs, rank, size, log, advice):
            with lost_rank_ends(), signals_end_at_once():
                world = ranks(rank, size)
                world.exchange(None)  # a rank that leaves now, leaves no other that still connects
            yield world
    finally:
        dist.destroy_process_group()
