"""Weights that a model converts to bfloat16 wherever it computes with them, as autocast does for products."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

aten = torch.ops.aten
MOVES = (aten.cat.default, aten.stack.default, aten.clone.default, aten.constant_pad_nd.default)
"""Operations that only move numbers, to new memory. Views need no memory."""


def bfloat16_weights(model: nn.Module, compute: Callable[[], Any]) -> set[nn.Parameter]:
    """Return the weights that each operation converts to bfloat16 first. Given in bfloat16, they have the
    same result.

    `compute` passes a row of data through the model. A weight that it does not use is not one of them.
    """
    was_training = model.training
    uses = _Uses(model)
    model.eval()  # a row changes no statistics
    try:
        with torch.no_grad(), uses:
            compute()
    finally:
        model.train(was_training)
    return uses.converted - uses.computed_with


class _Uses(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Follows the weights of a model to the operations that convert them, or that compute with them."""

    def __init__(self, model: nn.Module):
        super().__init__()  # type: ignore[no-untyped-call]
        self.converted: set[nn.Parameter] = set()
        self.computed_with: set[nn.Parameter] = set()
        self._weights_in = {_memory(weight): {weight} for weight in model.parameters()}
        self._moved: list[Tensor] = []  # so that no other tensor gets their memory

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        read = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        weights = set[nn.Parameter]().union(*(self._weights_in.get(_memory(each), ()) for each in read))
        if not weights or func.is_view or func.namespace == "prim":  # `prim` asks for a device
            return result
        if func in MOVES:
            self._moved.append(result)
            self._weights_in[_memory(result)] = weights
        elif func is aten._to_copy.default and result.dtype == torch.bfloat16:
            self.converted |= weights
        else:
            self.computed_with |= weights
        return result


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata
