"""A training step on tensors that have shapes, but no numbers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from foveal.core.shapes_only import without_initial_values
from foveal.inspection.operation_mode import OperationMode
from foveal.ops.jit.launch import counted_kernels
from foveal.studies.plan.torch_parts import (
    FAKE_TENSOR,
    LSTM_OF_CPU,
    READ_OF_A_NUMBER,
    fake_tensor_mode,
    is_fake,
)

SHORT = (1, 9)
"""Positions of two short sequences."""
ANY_NUMBER = 1
"""What a number of such a tensor is, where the step looks at one: finite, and not zero."""


@contextmanager
def without_numbers(selected: float = 1.0) -> Iterator[None]:
    """Return a context in which new tensors of a CPU have shapes, but no numbers, and take no memory. Of what
    a mask selects from, the fraction `selected` is taken."""
    with fake_tensor_mode(), _NumberReads(selected), _DropoutOfGPUs():
        yield


def made_without_numbers(make: Callable[[], nn.Module], device: torch.device) -> nn.Module:
    """Return a model whose weights have shapes, but no numbers, and take no memory."""
    with fake_tensor_mode(), _NumberReads(1.0), without_initial_values(), device:
        return make()


@contextmanager
def reading_numbers() -> Iterator[None]:
    """Return a context in which such a model computes on a batch that has numbers. What it reads of the batch
    alone is as ever, such as the lengths of rows."""
    with counted_kernels(FAKE_TENSOR), _NumberReads(1.0):
        yield


class _NumberReads(OperationMode):  # type: ignore[no-untyped-call]
    """Answers what the step reads of fake tensors.

    Groups whose members are counted have equal numbers of them, which are read one after another.
    """

    def __init__(self, selected: float) -> None:
        super().__init__()
        self._selected = selected
        self._sizes: list[int] = []

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        x: Any = args[0] if args else None
        if func is READ_OF_A_NUMBER and is_fake(x):
            if x.is_floating_point():
                return float(ANY_NUMBER)
            return self._sizes.pop(0) if self._sizes else ANY_NUMBER
        if func is torch.ops.aten.bincount.default and is_fake(x):
            groups = args[2] - 1  # the last one has the vectors without an expert
            ends = [x.numel() * group // groups for group in range(groups + 1)]
            self._sizes = [end - start for start, end in pairwise(ends)]
            return x.new_empty(groups + 1)
        if func is torch.ops.aten.index.Tensor and is_fake(x) and _is_mask(*args[1]):
            (mask,) = args[1]
            selected = round(self._selected * mask.numel()) if is_fake(mask) else int(mask.sum())
            return x.new_empty(selected, *x.shape[mask.dim() :])
        if func.name() == LSTM_OF_CPU and is_fake(args[1]):  # a weight
            *results, _ = func(*args, **(kwargs or {}))
            return *results, args[1].new_empty(_lstm_workspace(func, args), dtype=torch.uint8)
        return func(*args, **(kwargs or {}))


def _lstm_workspace(lstm: Callable[..., Any], arguments: Sequence[Any]) -> int:
    """Return the bytes that torch's LSTM for CPUs keeps for its backward pass. Each position adds about as
    many, as two short sequences with numbers show."""
    x, *others = arguments
    same = [torch.zeros(each.shape, dtype=each.dtype) if is_fake(each) else each for each in others]
    sequences = [torch.zeros(positions, *x.shape[1:], dtype=x.dtype) for positions in SHORT]
    shorter, longer = (lstm(each, *same)[-1].numel() for each in sequences)
    return int(shorter + (longer - shorter) * (len(x) - SHORT[0]) / (SHORT[1] - SHORT[0]))


def _is_mask(*indices: Any) -> bool:
    """Return whether the indices are a single tensor of booleans."""
    return len(indices) == 1 and indices[0] is not None and indices[0].dtype is torch.bool


class _DropoutOfGPUs(TorchFunctionMode):
    """Dropout is a single operation, as on GPUs."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        if func is F.dropout:
            return torch.native_dropout(args[0], named["p"], True)[0]
        return func(*args, **named)


def with_dropout_of_gpus(module: nn.Module) -> None:
    """Give a module this dropout where it is computed again in the backward pass, too, in which the context
    has no effect."""
    contexts = ExitStack()

    def enter(module: nn.Module, inputs: Any) -> None:
        contexts.enter_context(_DropoutOfGPUs())

    def leave(module: nn.Module, inputs: Any, outputs: Any) -> None:
        contexts.close()

    module.register_forward_pre_hook(enter)
    module.register_forward_hook(leave, always_call=True)  # a second computation ends where it is done
