"""Models that have shapes but no numbers."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

RANDOM_METHODS = (Tensor.normal_, Tensor.uniform_)


class _WithoutInitialValues(TorchFunctionMode):
    """Leave tensors as they are where initial values would be drawn."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        if func in RANDOM_METHODS or getattr(func, "__module__", "") == "torch.nn.init":
            return named["tensor"] if "tensor" in named else args[0]
        return func(*args, **named)


@contextmanager
def shapes_only() -> Iterator[None]:
    """Return a context in which models take no memory for numbers.

    Drawing numbers on the device `meta` would import torch's compiler, which takes seconds.
    """
    with torch.device("meta"), without_initial_values():
        yield


def without_initial_values() -> TorchFunctionMode:
    """Return a context in which no initial values are drawn."""
    return _WithoutInitialValues()
