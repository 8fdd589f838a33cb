"""Every operation of a step: its products, the bytes it moves, its messages, the memory of its results."""

import weakref
from collections import Counter
from collections.abc import Sequence, Set
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch import distributed as dist

from foveal.inspection.operation_mode import OperationMode, flop_formulas
from foveal.studies.plan.torch_parts import tensors_in

MemoryKind = Literal[
    "weights",
    "copies of weights",
    "gradients",
    "optimizer states",
    "averages",
    "activations",
    "working space",
]
"""What memory holds. Copies of weights are joined, or in 16 bits."""
Phase = Literal["setup", "forward", "backward", "update"]
NEW_IN_PHASE: dict[Phase, MemoryKind] = {
    "setup": "optimizer states",
    "forward": "activations",
    "backward": "working space",
    "update": "working space",
}
OF_WEIGHTS = ("weights", "copies of weights")
WITHOUT_WORK = ("empty_like", "new_empty", "new_empty_strided")
"""Operations that neither read nor write."""
COLLECTIVES = {
    "allreduce_": "all-reduce",
    "_allgather_base_": "all-gather",
    "_reduce_scatter_base_": "reduce-scatter",
    "alltoall_base_": "all-to-all",
}
"""The field's names of torch's messages."""


class Operation(NamedTuple):
    """What an operation takes."""

    phase: Phase
    flops: int
    moved: int
    """Bytes that are read and written."""
    is_half: bool
    """Whether the numbers have 16 bits."""


class Message(NamedTuple):
    """A message among the members of a group, in which a process sends and receives parts of `size` bytes.

    These are the bytes of the whole tensor: of the sum, or of the parts of all members.
    """

    phase: Phase
    collective: str
    group: str
    size: int


class StepRecorder(OperationMode):  # type: ignore[no-untyped-call]
    """Records operations, messages and memory of a process.

    `groups` are the names of its groups by their members. Each storage is counted once, as the kind that was
    told by `hold`, or else as what its phase makes. `unshared` kinds do not decide what the peak is. With
    `copies_gathers`, a gather or a reduce-scatter takes a second buffer for a moment.
    """

    def __init__(
        self,
        groups: dict[tuple[int, ...], str],
        unshared: Set[MemoryKind] = frozenset(),
        copies_gathers: bool = False,
    ):
        super().__init__()
        self.phase: Phase = "setup"
        self.operations: Counter[Operation] = Counter()
        self.messages: Counter[Message] = Counter()
        self.held: Counter[MemoryKind] = Counter()
        self.peak: Counter[MemoryKind] = Counter()
        self.flops = 0
        self._groups, self._unshared, self._formulas = groups, unshared, flop_formulas()
        self._kinds: dict[int, MemoryKind] = {}
        self._largest, self._copies_gathers = 0, copies_gathers

    def start(self) -> None:
        """Begin with the step: what was made before is there from the start."""
        self.phase, self._largest, self.peak = "forward", 0, Counter()

    def hold(self, tensor: Tensor, kind: MemoryKind) -> None:
        """Count the storage of a tensor as one of a kind."""
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.nbytes()
        if key in self._kinds:
            self.held[self._kinds[key]] -= size
        else:
            weakref.finalize(storage, self._free, key, size)
        self._kinds[key] = kind
        self.held[kind] += size
        self._compare_with_peak()

    def _compare_with_peak(self) -> None:
        total = sum(held for each, held in self.held.items() if each not in self._unshared)
        if total > self._largest:
            self._largest, self.peak = total, self.held.copy()

    def _free(self, key: int, size: int) -> None:
        self.held[self._kinds.pop(key)] -= size

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        result = func(*args, **named)
        if func.namespace == "prim":  # asks for a device
            return result
        read, written = tensors_in((args, named)), tensors_in(result)
        if func.namespace == "c10d":
            self._record_message(func, args, read)
            return result
        self._record_memory(read, written)
        works = not func.is_view and func.overloadpacket.__name__ not in WITHOUT_WORK
        if works and read and self.phase != "setup":
            self._record_operation(func, args, named, result, read, written)
        return result

    def _record_memory(self, read: list[Tensor], written: list[Tensor]) -> None:
        copies = bool(read) and all(self._kinds.get(_key(each)) in OF_WEIGHTS for each in read)
        kind: MemoryKind = (
            "copies of weights" if copies and self.phase == "forward" else NEW_IN_PHASE[self.phase]
        )
        for tensor in written:
            if _key(tensor) not in self._kinds:
                self.hold(tensor, kind)

    def _record_operation(
        self, func: Any, args: Any, named: Any, result: Any, read: list[Tensor], written: list[Tensor]
    ) -> None:
        formula = self._formulas.get(func.overloadpacket)
        flops = 0 if formula is None else formula(*args, **named, out_val=result)
        moved = sum(each.nbytes for each in (*read, *written))
        is_half = any(each.dtype in (torch.bfloat16, torch.float16) for each in read)
        self.flops += flops
        self.operations[Operation(self.phase, flops, moved, is_half)] += 1

    def _record_message(self, func: Any, args: Any, tensors: list[Tensor]) -> None:
        group = next(arg for arg in args if isinstance(arg, torch.ScriptObject))
        members = tuple(dist.get_process_group_ranks(dist.ProcessGroup.unbox(group)))
        name = COLLECTIVES[func.overloadpacket.__name__]
        size = max(each.nbytes for each in tensors)
        self.messages[Message(self.phase, name, self._groups[members], size)] += 1
        if name in ("all-gather", "reduce-scatter") and self._copies_gathers:
            self.held["working space"] += size
            self._compare_with_peak()
            self.held["working space"] -= size


def _key(tensor: Tensor) -> int:
    key: int = tensor.untyped_storage()._cdata
    return key
