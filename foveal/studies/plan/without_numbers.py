"""A training step on tensors that have shapes, but no numbers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from foveal.inspection.operation_mode import OperationMode

ANY_NUMBER = 1.0
"""What a number of such a tensor is, where the step looks at one: finite, and not zero."""


@contextmanager
def without_numbers() -> Iterator[None]:
    """Return a context in which new tensors of a CPU have shapes, but no numbers, and take no memory."""
    with FakeTensorMode(allow_non_fake_inputs=True), _ScalarReads(), _HostReads():
        yield


def compute_without_numbers(module: nn.Module) -> None:
    """Let a module compute without numbers, also when it is computed again in the backward pass, in which the
    context has no effect."""
    reads = ExitStack()

    def enter(module: nn.Module, inputs: Any) -> None:
        reads.enter_context(_HostReads())

    def leave(module: nn.Module, inputs: Any, outputs: Any) -> None:
        reads.close()

    module.register_forward_pre_hook(enter)
    module.register_forward_hook(leave, always_call=True)  # a second computation ends where it is done


class _ScalarReads(OperationMode):  # type: ignore[no-untyped-call]
    """Gives `ANY_NUMBER` for a number that is read of a tensor without numbers."""

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default and isinstance(args[0], FakeTensor):
            return ANY_NUMBER if args[0].is_floating_point() else int(ANY_NUMBER)
        return func(*args, **(kwargs or {}))


class _HostReads(TorchFunctionMode):
    """Answers calls that need the numbers of a tensor.

    Groups that are counted have equal numbers of members. Dropout is the single operation that GPUs have.
    """

    def __init__(self) -> None:
        super().__init__()
        self._sizes: list[int] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        x = args[0] if args else None
        if not isinstance(x, FakeTensor):
            return func(*args, **named)
        if func is F.dropout:
            return torch.native_dropout(x, named["p"], True)[0]
        if func is Tensor.bincount:
            groups = named["minlength"] - 1  # the last one has the vectors without an expert
            ends = [x.numel() * group // groups for group in range(groups + 1)]
            self._sizes = [end - start for start, end in pairwise(ends)]
            return x.new_empty(groups + 1)
        if func is Tensor.tolist:
            return _filled(x.shape) if x.is_floating_point() else self._sizes[: len(x)]
        return func(*args, **named)


def _filled(shape: Sequence[int]) -> Any:
    return [_filled(shape[1:]) for _ in range(shape[0])] if shape else ANY_NUMBER
