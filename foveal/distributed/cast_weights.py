"""Weights that a model converts to 16 bits wherever it computes with them, as autocast does for products."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

LOWER = (torch.bfloat16, torch.float16)
aten = torch.ops.aten
MOVES = (aten.cat.default, aten.stack.default, aten.clone.default)
"""Operations that move numbers to new memory. Views need no memory."""


def cast_weights(model: nn.Module, compute: Callable[[], Any]) -> dict[nn.Parameter, torch.dtype]:
    """Return the weights that are converted to 16 bits by everything that computes with them, with that type.

    They can as well be handed to the model in 16 bits. `compute` passes a row of data through the model. A
    weight that it does not show to be converted is not one of them.
    """
    was_training = model.training
    reads = _Reads(model)
    model.eval()  # a row changes no statistics
    try:
        with torch.no_grad(), reads:
            compute()
    finally:
        model.train(was_training)
    return {weight: dtype for weight, dtype in reads.cast.items() if weight not in reads.exact}


class _Reads(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows the weights of a model until an operation converts them, or computes with them as they are."""

    def __init__(self, model: nn.Module):
        super().__init__()  # type: ignore[no-untyped-call]
        self.cast: dict[nn.Parameter, torch.dtype] = {}
        self.exact: set[nn.Parameter] = set()
        self._weights_in = {_memory(weight): {weight} for weight in model.parameters()}
        self._moved: list[Tensor] = []  # so that their memory is not given to others

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        read = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        weights = set[nn.Parameter]().union(*(self._weights_in.get(_memory(each), ()) for each in read))
        if not weights or func.is_view:
            return result
        if func in MOVES:
            self._moved.append(result)
            self._weights_in[_memory(result)] = weights
        elif func is aten._to_copy.default and result.dtype in LOWER:
            self.cast |= dict.fromkeys(weights, result.dtype)
        else:
            self.exact |= weights
        return result


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata
