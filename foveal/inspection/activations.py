"""Statistics of a model's activations, layer by layer, on one batch: what its first weights, or the trained
ones, make of the size of things (LeCun et al. 1998; Glorot and Bengio 2010, figures 2 to 8).

Every call of an activation function is seen, whether it is a module or a function inside one; of stacks of
mixers the output of each block, too. Pictures are drawn by `activations_picture`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from foveal.layers.block import Block

BINS = 64
SATURATED = 0.1
"""Where the slope is less than this share of the steepest."""
DEVIATIONS = 5
"""What is drawn, to both sides of the mean."""
BLOCK = "block"
RECTIFIERS = ("relu", "relu6")
CAVEAT = (
    "one batch; gradient: of its mean loss; saturated: a slope below a tenth of the steepest; dead: zero for "
    "every example, each place of a map counted; a rectifier's bin at zero is cut in the picture"
)
_NAMES = ("relu", "sigmoid", "tanh", "leaky_relu", "elu", "gelu", "silu", "hardtanh")
_FUNCTIONS = {
    getattr(torch.ops.aten, f"{name}{place}"): name.replace("_", "-")
    for name in _NAMES
    for place in ("", "_")
    if hasattr(torch.ops.aten, f"{name}{place}")
}


@dataclass(frozen=True)
class Activations:
    """What one activation function, or one block, gave for a batch.

    `name` is the module that the function is, or stands behind; `shape` that of one example. Shares are None
    where they mean nothing: `saturated` is of sigmoid and tanh, `zeros` and `dead` (units that are zero for
    every example) of rectifiers. `gradient` is the deviation of the loss's gradient, None if there is none.
    `counts` are of bins of equal width from `low` to `high`, the same for all of a model; what lies beyond is
    in the last ones.
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


def activations_of(model: nn.Module, loss: Callable[[], Tensor]) -> list[Activations]:
    """What is seen of `model` while `loss()` runs it on a batch and gives a scalar, in the order of calls.

    The first axis of every activation counts examples. The model stays as it is, but for what a call changes.
    """
    watch = _Watch()
    hooks = [
        hook
        for name, module in model.named_modules()
        for hook in (
            module.register_forward_pre_hook(watch.entering(name)),
            module.register_forward_hook(watch.leaving(name)),
        )
    ]
    try:
        with torch.enable_grad(), watch:
            value = loss()
    finally:
        for hook in hooks:
            hook.remove()
    return _statistics(watch.seen, _gradients(value, watch.seen))


class _Seen(list[Tensor]):
    """The outputs of one function at one place: several, where a loop calls it."""

    def __init__(self, name: str, function: str):
        super().__init__()
        self.name, self.function = name, function


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Keeps the outputs of activation functions and blocks, and behind which module they were made.

    Calls with no module entered or left between them are a loop over time, and kept as one.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._found: dict[tuple[Any, ...], _Seen] = {}
        self._names: dict[str, int] = {}
        self._place, self._passed = "", 0

    @property
    def seen(self) -> list[_Seen]:
        return list(self._found.values())

    def entering(self, name: str) -> Callable[..., None]:
        def enter(module: nn.Module, given: Any) -> None:
            self._place, self._passed = name, self._passed + 1

        return enter

    def leaving(self, name: str) -> Callable[..., None]:
        def leave(module: nn.Module, given: Any, output: Any) -> None:
            self._place, self._passed = name, self._passed + 1
            if isinstance(module, Block):
                self._keep(BLOCK, output[0])

        return leave

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        name = _FUNCTIONS.get(function.overloadpacket)
        if name is not None and result.dim() > 1:
            clipped_at_zero = name == "hardtanh" and len(args) > 1 and args[1] == 0
            self._keep("relu6" if clipped_at_zero else name, result)
        return result

    def _keep(self, function: str, output: Tensor) -> None:
        key = (self._passed, function, output.shape[1:])
        if key not in self._found:
            count = self._names[self._place] = self._names.get(self._place, 0) + 1
            name = self._place if count == 1 else f"{self._place} ({count})"
            self._found[key] = _Seen(name, function)
        self._found[key].append(output)


def _gradients(loss: Tensor, seen: Sequence[_Seen]) -> list[list[Tensor]]:
    """Of the loss to each of the tensors that it has one to."""
    wanted = [tensor for some in seen for tensor in some if tensor.requires_grad]
    if not wanted or not loss.requires_grad:
        return [[] for _ in seen]
    found = iter(torch.autograd.grad(loss, wanted, allow_unused=True))
    each = [[next(found) for tensor in some if tensor.requires_grad] for some in seen]
    return [[gradient for gradient in some if gradient is not None] for some in each]


def _statistics(seen: Sequence[_Seen], gradients: Sequence[list[Tensor]]) -> list[Activations]:
    values = [torch.cat([tensor.detach().float() for tensor in some]) for some in seen]
    ranges = [_range(x) for x in values]
    low, high = min((low for low, _ in ranges), default=0.0), max((high for _, high in ranges), default=0.0)
    found = []
    for some, x, slopes in zip(seen, values, gradients, strict=True):
        rectified = some.function in RECTIFIERS
        inside = x[x.isfinite()].clamp(low, high)
        found.append(
            Activations(
                some.name,
                some.function,
                tuple(x.shape[1:]),
                float(x.mean()),
                _deviation(x),
                _deviation(torch.cat([slope.float() for slope in slopes])) if slopes else None,
                _saturated(some.function, x),
                float((x == 0).float().mean()) if rectified else None,
                float((x == 0).all(0).float().mean()) if rectified else None,
                low,
                high,
                tuple(int(count) for count in torch.histc(inside, BINS, low, high)),
            )
        )
    return found


def _range(x: Tensor) -> tuple[float, float]:
    """Most of what is finite, and a little more than nothing."""
    x = x[x.isfinite()]
    if not x.numel():
        return 0.0, 0.0
    mean, reach = float(x.mean()), DEVIATIONS * _deviation(x)
    return max(float(x.min()), mean - reach), min(float(x.max()), mean + reach)


def _deviation(x: Tensor) -> float:
    return float(x.std(correction=0))


def _saturated(function: str, y: Tensor) -> float | None:
    """The share of outputs `y` whose slope is small: sigmoid' = y (1 - y), tanh' = 1 - y^2."""
    if function == "sigmoid":
        slope = 4 * y * (1 - y)
    elif function == "tanh":
        slope = 1 - y.square()
    else:
        return None
    return float((slope < SATURATED).float().mean())
