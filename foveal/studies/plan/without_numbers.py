"""A training step on tensors that have shapes, but no numbers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.overrides import TorchFunctionMode

from foveal.inspection.operation_mode import OperationMode

ANY_NUMBER = 1.0
"""What a number of such a tensor is, where the step looks at one: finite, and not zero."""


class _HostReads(TorchFunctionMode):
    """Answers for tensors without numbers what the step reads of them.

    Experts get equal numbers of vectors.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._counts: list[int] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        if func is Tensor.backward:  # a mode is off in here, but blocks that are computed again read numbers
            with self:
                return torch.autograd.backward(args[0])
        first = args[0] if args else None
        if func is Tensor.bincount and isinstance(first, FakeTensor):
            groups = named["minlength"] - 1  # the last one is for vectors without an expert
            self._counts = [
                first.numel() * (group + 1) // groups - first.numel() * group // groups
                for group in range(groups)
            ]
            return first.new_empty(groups + 1)
        if func is Tensor.tolist and isinstance(first, FakeTensor):
            if not first.is_floating_point():
                return self._counts[: len(first)]
            return _filled(first.shape)
        return func(*args, **named)


class _NumberReads(OperationMode):
    """Gives `ANY_NUMBER` for a number that is read of a tensor without numbers."""

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default and isinstance(args[0], FakeTensor):
            return ANY_NUMBER if args[0].is_floating_point() else int(ANY_NUMBER)
        return func(*args, **(kwargs or {}))


def _filled(shape: Sequence[int]) -> Any:
    return [_filled(shape[1:]) for _ in range(shape[0])] if shape else ANY_NUMBER


@contextmanager
def without_numbers() -> Iterator[None]:
    """Return a context in which new tensors of a CPU have shapes, but no numbers, and take no memory."""
    with FakeTensorMode(allow_non_fake_inputs=True), _HostReads(), _NumberReads():
        yield
