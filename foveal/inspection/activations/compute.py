"""Statistics of a model's activations, layer by layer, on one batch: what its first weights, or the trained
ones, make of the size of things (LeCun et al. 1998; Glorot and Bengio 2010, figures 2 to 8).

Every call of an activation function is seen, whether it is a module or a function inside one. Gates that a
kernel would hide are seen too: such layers run as their equations are written. Of stacks of mixers the output
of each block is seen. Calls behind the same layer, as of a loop over time, are taken together. Pictures are
drawn by `activations_picture`.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from foveal.config import AugmentConfig
from foveal.inspection.base import InspectedTask
from foveal.layers.blocks.mixer_block import Block
from foveal.ops.jit.dispatch import reference_only

HISTOGRAM_BINS = 64
SATURATED_SLOPE = 0.1
"""Where the slope is less than this share of the steepest."""
HISTOGRAM_STDS = 5
"""What is drawn, to both sides of the mean."""
BLOCK = "block"
RECTIFIERS = ("relu", "relu6")
FUSED_OPS = ("Elman", "LSTM", "GRU", "mamba_gate", "depthwise_conv1d", "gelu")
"""Operations with activation functions inside of their kernels."""
CAVEAT = (
    "one batch, its padding counted; gradient: of its mean loss; saturated: a slope below a tenth of the "
    "steepest; dead: zero for every example, each place of a map counted; a rectifier's bin at zero is "
    "cut in the picture"
)
_ACTIVATION_NAMES = ("relu", "sigmoid", "tanh", "leaky_relu", "elu", "gelu", "silu", "hardtanh")
_ACTIVATION_OPS = {
    getattr(torch.ops.aten, f"{name}{place}"): name.replace("_", "-")
    for name in _ACTIVATION_NAMES
    for place in ("", "_")
    if hasattr(torch.ops.aten, f"{name}{place}")
}


@dataclass(frozen=True)
class ActivationStats:
    """What one activation function, or one block, gave for a batch.

    `name` is the layer behind which the function stands: the last module with parameters of its own that was
    at work. `shape` is that of one example. Shares are None where they mean nothing: `saturated` is of
    sigmoid and tanh, `zeros` and `dead` (units that are zero for every example) of rectifiers. `gradient` is
    the deviation of the loss's gradient, None if there is none. `counts` are of bins of equal width from
    `low` to `high`, the same for all of a model; what lies beyond is in the last ones.
    """

    name: str
    function: str
    shape: tuple[int, ...]
    mean: float
    deviation: float
    gradient: float | None
    saturated: float | None
    zeros: float | None
    dead: float | None
    low: float
    high: float
    counts: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Numbers that are not finite are None."""
        found = asdict(self)
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in found.items()}


def collect_activations(model: nn.Module, loss: Callable[[], Tensor]) -> list[ActivationStats]:
    """What is seen of `model` while `loss()` runs it on a batch and gives a scalar, in the order of calls.

    The first axis of every activation counts examples. The model stays as it is, but for what a call changes.
    """
    watch = _ActivationRecorder()
    hooks = []
    for name, module in model.named_modules():
        if next(module.parameters(recurse=False), None) is not None:
            hooks += [module.register_forward_pre_hook(watch.layer_hook(name))]
            hooks += [module.register_forward_hook(watch.layer_hook(name))]
        if isinstance(module, Block):
            hooks += [module.register_forward_hook(watch.block_hook(name))]
    try:
        with torch.enable_grad(), reference_only(*FUSED_OPS), watch:
            value = loss()
    finally:
        for hook in hooks:
            hook.remove()
    return _statistics(watch.recorded, _gradients(value, watch.recorded.values()))


def unaugmented_batch(task: InspectedTask, data: Any) -> Any:
    """Return a batch of `data` in random order, as data may be sorted by class; images are not augmented."""
    plain = task.config.data.model_copy(update={"augment": AugmentConfig()})
    return task.with_config(task.config.model_copy(update={"data": plain})).train_batches(data).batch(0, 0)


class _CallSite(NamedTuple):
    """Behind which layer, which function, and the shape of an example."""

    layer: str
    function: str
    shape: tuple[int, ...]


class _ActivationRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps the outputs of activation functions and blocks; those of one place, as of a loop, together."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.recorded: dict[_CallSite, list[Tensor]] = {}
        self._current_layer = ""

    def layer_hook(self, name: str) -> Callable[..., None]:
        def hook(*_: Any) -> None:
            self._current_layer = name

        return hook

    def block_hook(self, name: str) -> Callable[..., None]:
        def hook(module: nn.Module, given: Any, output: Any) -> None:
            self._record(name, BLOCK, output[0])

        return hook

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        name = _ACTIVATION_OPS.get(function.overloadpacket)
        if name is not None and result.dim() > 1:
            clipped_at_zero = name == "hardtanh" and len(args) > 1 and args[1] == 0
            self._record(self._current_layer, "relu6" if clipped_at_zero else name, result)
        return result

    def _record(self, layer: str, function: str, output: Tensor) -> None:
        self.recorded.setdefault(_CallSite(layer, function, tuple(output.shape[1:])), []).append(output)


def _gradients(loss: Tensor, recorded: Iterable[list[Tensor]]) -> list[list[Tensor]]:
    """Of the loss to each of the tensors that it has one to."""
    each = [[tensor for tensor in some if tensor.requires_grad] for some in recorded]
    wanted = [tensor for some in each for tensor in some]
    if not wanted or not loss.requires_grad:
        return [[] for _ in each]
    found = iter(torch.autograd.grad(loss, wanted, allow_unused=True))
    gradients = [[next(found) for _ in some] for some in each]
    return [[gradient for gradient in some if gradient is not None] for some in gradients]


def _statistics(
    recorded: dict[_CallSite, list[Tensor]], gradients: Sequence[list[Tensor]]
) -> list[ActivationStats]:
    values = [_concatenate(some) for some in recorded.values()]
    ranges = [_range(x) for x in values]
    low, high = min((low for low, _ in ranges), default=0.0), max((high for _, high in ranges), default=0.0)
    found = []
    for where, x, slopes in zip(recorded, values, gradients, strict=True):
        rectified = where.function in RECTIFIERS
        inside = x[x.isfinite()].clamp(low, high)
        found.append(
            ActivationStats(
                *where,
                float(x.mean()),
                _std(x),
                _std(_concatenate(slopes)) if slopes else None,
                _saturated_fraction(where.function, x),
                float((x == 0).float().mean()) if rectified else None,
                float((x == 0).all(0).float().mean()) if rectified else None,
                low,
                high,
                tuple(int(count) for count in torch.histc(inside, HISTOGRAM_BINS, low, high)),
            )
        )
    return found


def _concatenate(tensors: list[Tensor]) -> Tensor:
    """As one; no copy of a single one, which may be large."""
    return (tensors[0] if len(tensors) == 1 else torch.cat(tensors)).detach().float()


def _range(x: Tensor) -> tuple[float, float]:
    """Most of what is finite, and a little more than nothing."""
    x = x[x.isfinite()]
    if not x.numel():
        return 0.0, 0.0
    mean, reach = float(x.mean()), HISTOGRAM_STDS * _std(x)
    return max(float(x.min()), mean - reach), min(float(x.max()), mean + reach)


def _std(x: Tensor) -> float:
    return float(x.std(correction=0))


def _saturated_fraction(function: str, y: Tensor) -> float | None:
    """The share of outputs `y` whose slope is small: sigmoid' = y (1 - y), tanh' = 1 - y^2."""
    if function == "sigmoid":
        slope = 4 * y * (1 - y)
    elif function == "tanh":
        slope = 1 - y.square()
    else:
        return None
    return float((slope < SATURATED_SLOPE).float().mean())
