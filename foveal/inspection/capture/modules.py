"""What any module offers: its output, and the attention weights of modules from other libraries."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from foveal.core.tap import TapListener, TappedModule
from foveal.inspection.operation_mode import OperationMode, named_arguments, without_fast_path
from foveal.ops.attention.attention_map import AttentionMap

COMPILED = "_orig_mod"
"""The name under which `torch.compile` holds the module, also in the names of its weights."""
SOFTMAX = ("aten::_softmax", "aten::softmax")
"""The softmax of attention that is written out: with gradients or without, and in inference mode."""
DIRECT_SOFTMAX = "aten::_safe_softmax"
"""The softmax of attention without a fused kernel: its result is the weights."""


def published_paths(model: nn.Module) -> dict[nn.Module, str]:
    """Return the path of each module as in the names of the weights, without the shells of torch.compile."""
    return {
        module: ".".join(part for part in path.split(".") if part != COMPILED)
        for path, module in model.named_modules()
        if COMPILED not in dict(module.named_children())
    }


@contextmanager
def watch_modules(model: nn.Module, listener: TapListener) -> Iterator[None]:
    """Give a listener the outputs of all modules, and the attention weights of modules that have no taps."""
    running = list[nn.Module]()
    with ExitStack() as stack:
        for module in published_paths(model):
            stack.callback(module.register_forward_pre_hook(lambda m, _: running.append(m)).remove)
            end = _output_hook(running, listener)
            stack.callback(module.register_forward_hook(end, always_call=True).remove)
        stack.enter_context(without_fast_path())
        stack.enter_context(_AttentionMode(running, listener))
        yield


def _output_hook(running: list[nn.Module], listener: TapListener) -> Any:
    def end(module: nn.Module, inputs: Any, result: Any) -> None:
        if running and running[-1] is module:
            running.pop()
        tensor = _first_tensor(result)
        if tensor is not None and listener.wants(module, "output"):
            listener.receive(module, "output", tensor)

    return end


def _first_tensor(result: Any) -> Tensor | None:
    """Return the first tensor of a module's result: a tensor, a tuple, or a mapping as Hugging Face's."""
    if isinstance(result, Mapping):
        result = tuple(result.values())
    if isinstance(result, list | tuple):
        return next((part for part in result if isinstance(part, Tensor)), None)
    return result if isinstance(result, Tensor) else None


class _AttentionMode(OperationMode):  # type: ignore[no-untyped-call]
    """The context that sees attention inside modules without taps, whichever kernel computes it."""

    def __init__(self, running: list[nn.Module], listener: TapListener):
        super().__init__()
        self._running, self._listener = running, listener

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        module = self._running[-1] if self._running else None
        if module is None or isinstance(module, TappedModule):
            return result
        weights = _weights(module, func, args, kwargs or {}, result)
        if weights is not None and self._listener.wants(module, "weights"):
            self._listener.receive(module, "weights", weights())
        return result


def _weights(
    module: nn.Module, operation: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
) -> Callable[[], Tensor | AttentionMap] | None:
    """Return the function that makes the weights of a call of attention; None for other operations."""
    name = operation.name().partition(".")[0]
    if "scaled_dot_product" in name and "backward" not in name:
        return lambda: _attention_map(named_arguments(operation, args, kwargs), result)
    if name == DIRECT_SOFTMAX or (name in SOFTMAX and _is_attention(module, operation, args, kwargs, result)):
        return lambda: _four_axes(module, result)
    return None


def _is_attention(
    module: nn.Module, operation: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Tensor
) -> bool:
    """Return whether a softmax gives the weights of attention that is written out: over the last of the axes
    batch, head, query and key. `nn.MultiheadAttention` has batch and head on one axis."""
    if isinstance(module, nn.MultiheadAttention):
        return True
    return result.dim() == 4 and named_arguments(operation, args, kwargs)["dim"] in (3, -1)


def _attention_map(given: Mapping[str, Any], result: Any) -> AttentionMap:
    """Return the map of a call of torch's attention. Its causal mask starts at the first key."""
    mask = given.get("attn_mask", given.get("attn_bias"))
    boolean = mask is not None and mask.dtype == torch.bool
    q, k, v = (_with_heads(given[name]) for name in ("query", "key", "value"))
    attention = AttentionMap(
        q,
        k,
        visible=_with_heads(mask) if boolean else None,
        bias=None if mask is None or boolean else _with_heads(mask),
        causal=given["is_causal"],
        scale=given["scale"],
    )
    if given["dropout_p"] > 0:
        return attention
    return attention.compare(v, _with_heads(result if isinstance(result, Tensor) else result[0]))


def _with_heads(x: Tensor) -> Tensor:
    """Return a view with four axes: a batch and heads of size 1 where a call has none."""
    return x[(None,) * (4 - x.dim())]


def _four_axes(module: nn.Module, weights: Tensor) -> Tensor:
    """Return weights as (B, H, T, S). `nn.MultiheadAttention` has rows and heads on one axis."""
    if weights.dim() == 3 and isinstance(module, nn.MultiheadAttention):
        return torch.unflatten(weights, 0, (-1, module.num_heads))
    return _with_heads(weights)
