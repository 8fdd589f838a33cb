"""The outputs of activation functions, blocks and linear layers of a model while it runs on a batch.

Every call of an activation function is recorded, whether the function is a module or is called inside a
module. Gates that a kernel would hide are recorded too, because their layers run as the plain equations. In
stacks of mixers, the output of each block is recorded. Calls after the same layer, as in a loop over time,
count together.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from foveal.inspection.operation_mode import OperationMode
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.vision.handcrafted_features import StandardizedFeatures
from foveal.ops.jit.dispatch import reference_only

BLOCK, OUTPUT = "block", "output"
RECTIFIERS = ("relu", "relu6")
SATURATED_SLOPE = 0.1
"""An output is saturated where the slope is less than this share of the steepest slope."""
FUSED_OPS = ("ElmanCell", "LSTMCell", "GRUCell", "mamba_gate", "depthwise_conv1d", "gelu")
"""Operations whose kernels contain activation functions."""
_ACTIVATION_NAMES = ("relu", "sigmoid", "tanh", "leaky_relu", "elu", "gelu", "silu", "hardtanh")
_ACTIVATION_OPS = {
    getattr(torch.ops.aten, f"{name}{in_place}"): name.replace("_", "-")
    for name in _ACTIVATION_NAMES
    for in_place in ("", "_")
    if hasattr(torch.ops.aten, f"{name}{in_place}")
}


class CallSite(NamedTuple):
    """The layer before the function, the function, and the shape of its output for a single example."""

    layer: str
    function: str
    shape: tuple[int, ...]


Recorded = dict[CallSite, list[Tensor]]
"""The outputs of each call site, in the order of the calls. The first axis is the batch axis."""


def record_outputs(model: nn.Module, loss: Callable[[], Tensor]) -> tuple[Tensor, Recorded]:
    """Return a scalar loss of `model`, and the outputs of its activation functions and blocks; of a model
    without any, those of features that are not learned and of linear layers.

    `loss()` runs the model on a batch. The model's running statistics change as in any forward pass.
    """
    value, recorded = _record_functions(model, loss)
    return (value, recorded) if recorded else _record_linear(model, loss)


def _record_functions(model: nn.Module, loss: Callable[[], Tensor]) -> tuple[Tensor, Recorded]:
    recorder = _OutputRecorder()
    hooks = []
    for name, module in model.named_modules():
        if _has_own_weights(module):
            hooks += [module.register_forward_pre_hook(recorder.layer_hook(name))]
            hooks += [module.register_forward_hook(recorder.layer_hook(name))]
        for child_name, child in module.named_children():
            if _has_own_weights(child) and type(child).forward is nn.Module.forward:  # a cell, never called
                path = f"{name}.{child_name}".removeprefix(".")
                hooks += [module.register_forward_pre_hook(recorder.layer_hook(path))]
        if isinstance(module, Block):
            hooks += [module.register_forward_hook(recorder.output_hook(name, BLOCK))]
    return _run_recorded(recorder, hooks, loss)


def _has_own_weights(module: nn.Module) -> bool:
    return next(module.parameters(recurse=False), None) is not None


def _record_linear(model: nn.Module, loss: Callable[[], Tensor]) -> tuple[Tensor, Recorded]:
    recorder = _OutputRecorder(functions=False)
    hooks = [
        module.register_forward_hook(recorder.output_hook(name, OUTPUT))
        for name, module in model.named_modules()
        if isinstance(module, StandardizedFeatures | nn.Linear)
    ]
    return _run_recorded(recorder, hooks, loss)


def _run_recorded(
    recorder: "_OutputRecorder", hooks: Sequence[RemovableHandle], loss: Callable[[], Tensor]
) -> tuple[Tensor, Recorded]:
    try:
        with torch.enable_grad(), reference_only(*FUSED_OPS), recorder:
            value = loss()
    finally:
        for hook in hooks:
            hook.remove()
    return value, recorder.recorded


def gradients(
    loss: Tensor, recorded: Recorded, weights: Sequence[Tensor] = ()
) -> tuple[list[list[Tensor]], list[Tensor | None]]:
    """Return the gradients of the loss for the tensors of each call site, without tensors that have no
    gradient, and those for `weights`. No `.grad` changes."""
    groups = [[tensor for tensor in tensors if tensor.requires_grad] for tensors in recorded.values()]
    flat = [*(tensor for tensors in groups for tensor in tensors), *weights]
    if not flat or not loss.requires_grad:
        return [[] for _ in groups], [None for _ in weights]
    gradients = iter(torch.autograd.grad(loss, flat, allow_unused=True))
    of_outputs = [[next(gradients) for _ in tensors] for tensors in groups]
    return [[one for one in group if one is not None] for group in of_outputs], [*gradients]


def concatenated(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenate all tensors in float32. A single tensor is not copied, because it may be large."""
    return (tensors[0] if len(tensors) == 1 else torch.cat([*tensors])).detach().float()


def saturated_fraction(function: str, y: Tensor) -> float | None:
    """Return the fraction of outputs `y` with a small derivative: sigmoid' = y (1 - y), tanh' = 1 - y^2.

    None for other functions.
    """
    if function == "sigmoid":
        slope = 4 * y * (1 - y)
    elif function == "tanh":
        slope = 1 - y.square()
    else:
        return None
    return float((slope < SATURATED_SLOPE).float().mean())


def dead_fraction(function: str, y: Tensor) -> float | None:
    """Return the fraction of units of a rectifier that are 0 for every example. None for other functions."""
    return float((y == 0).all(0).float().mean()) if function in RECTIFIERS else None


class _OutputRecorder(OperationMode):  # type: ignore[no-untyped-call]
    """Keeps outputs by call site; a loop is one call site."""

    def __init__(self, functions: bool = True) -> None:
        super().__init__()
        self._functions = functions
        self.recorded: Recorded = {}
        self._current_layer = ""

    def layer_hook(self, name: str) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            self._current_layer = name

        return hook

    def output_hook(self, name: str, function: str) -> Callable[..., None]:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            self._record(name, function, output if isinstance(output, Tensor) else output[0])

        return hook

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        name = _ACTIVATION_OPS.get(function.overloadpacket)
        if self._functions and name is not None and result.dim() > 1:
            clipped_at_zero = name == "hardtanh" and len(args) > 1 and args[1] == 0
            self._record(self._current_layer, "relu6" if clipped_at_zero else name, result)
        return result

    def _record(self, layer: str, function: str, output: Tensor) -> None:
        self.recorded.setdefault(CallSite(layer, function, tuple(output.shape[1:])), []).append(output)
