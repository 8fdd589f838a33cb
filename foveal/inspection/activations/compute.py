"""Statistics of a model's activations on a batch, layer by layer, before or after training.

They show whether signals and gradients keep their scale from layer to layer (LeCun et al. 1998; Glorot and
Bengio 2010, figures 2 to 8). Every call of an activation function is recorded, whether the function is a
module or is called inside a module. Gates that a kernel would hide are recorded too, because their layers run
as the plain equations. In stacks of mixers, the output of each block is recorded. Calls after the same layer,
as in a loop over time, count together.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from foveal.config import AugmentConfig
from foveal.inspection.operation_mode import OperationMode
from foveal.inspection.run_protocols import InspectedTask
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.vision.handcrafted_features import StandardizedFeatures
from foveal.ops.jit.dispatch import reference_only

HISTOGRAM_BINS = 64
SATURATED_SLOPE = 0.1
"""An output is saturated where the slope is less than this share of the steepest slope."""
HISTOGRAM_STDS = 5
"""Standard deviations that a histogram reaches to both sides of the mean."""
BLOCK, OUTPUT = "block", "output"
RECTIFIERS = ("relu", "relu6")
FUSED_OPS = ("ElmanCell", "LSTMCell", "GRUCell", "mamba_gate", "depthwise_conv1d", "gelu")
"""Operations whose kernels contain activation functions."""
CAVEAT = (
    "one batch, its padding counted; gradient: of its mean loss; saturated: a slope below a tenth of the "
    "steepest; dead: zero for every example, each place of a map counted; a rectifier's bin at zero is "
    "cut in the picture"
)
_ACTIVATION_NAMES = ("relu", "sigmoid", "tanh", "leaky_relu", "elu", "gelu", "silu", "hardtanh")
_ACTIVATION_OPS = {
    getattr(torch.ops.aten, f"{name}{in_place}"): name.replace("_", "-")
    for name in _ACTIVATION_NAMES
    for in_place in ("", "_")
    if hasattr(torch.ops.aten, f"{name}{in_place}")
}


@dataclass(frozen=True)
class ActivationStats:
    """Statistics of the outputs of an activation function, or of a block, for a batch.

    `name` is the layer before the function: the last module with its own parameters that ran. `shape` is the
    shape of a single example. Fractions are None where they have no meaning: `saturated` belongs to sigmoid
    and tanh, `zeros` and `dead` (units that are zero for every example) to rectifiers. `gradient` is the
    standard deviation of the loss's gradient, None if there is no gradient. `counts` is a histogram with bins
    of equal width from `low` to `high`, the same limits for all layers of a model. Outputs beyond the limits
    count in the first or last bin.
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
        """Return the fields; numbers that are not finite are None."""
        fields = asdict(self)
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in fields.items()}


def collect_activations(model: nn.Module, loss: Callable[[], Tensor]) -> list[ActivationStats]:
    """Return the statistics of `model` while `loss()` runs the model on a batch, in the order of calls.

    `loss` returns a scalar. The first axis of every activation is the batch axis. The model's running
    statistics change as in any forward pass.
    """
    recorder = _ActivationRecorder()
    hooks = []
    for name, module in model.named_modules():
        if next(module.parameters(recurse=False), None) is not None:
            hooks += [module.register_forward_pre_hook(recorder.layer_hook(name))]
            hooks += [module.register_forward_hook(recorder.layer_hook(name))]
        if isinstance(module, Block):
            hooks += [module.register_forward_hook(recorder.output_hook(name, BLOCK))]
    return _run_recorded(recorder, hooks, loss)


def collect_outputs(model: nn.Module, loss: Callable[[], Tensor]) -> list[ActivationStats]:
    """Return the statistics of the outputs of features that are not learned and of linear layers, as
    `collect_activations` does for activation functions."""
    recorder = _ActivationRecorder(functions=False)
    hooks = [
        module.register_forward_hook(recorder.output_hook(name, OUTPUT))
        for name, module in model.named_modules()
        if isinstance(module, StandardizedFeatures | nn.Linear)
    ]
    return _run_recorded(recorder, hooks, loss)


def _run_recorded(
    recorder: "_ActivationRecorder", hooks: Sequence[RemovableHandle], loss: Callable[[], Tensor]
) -> list[ActivationStats]:
    try:
        with torch.enable_grad(), reference_only(*FUSED_OPS), recorder:
            value = loss()
    finally:
        for hook in hooks:
            hook.remove()
    return _statistics(recorder.recorded, _gradients(value, recorder.recorded.values()))


def unaugmented_batch(task: InspectedTask, data: Any) -> Any:
    """Return a batch of `data` without augmentation, in random order, since data may be sorted by class."""
    plain = task.config.data.model_copy(update={"augment": AugmentConfig()})
    return task.with_config(task.config.model_copy(update={"data": plain})).train_batches(data).batch(0, 0)


class _CallSite(NamedTuple):
    """The layer before the function, the function, and the shape of its output for a single example."""

    layer: str
    function: str
    shape: tuple[int, ...]


class _ActivationRecorder(OperationMode):  # type: ignore[no-untyped-call]
    """Keeps the outputs of activation functions and blocks by call site; a loop is one call site."""

    def __init__(self, functions: bool = True) -> None:
        super().__init__()
        self._functions = functions
        self.recorded: dict[_CallSite, list[Tensor]] = {}
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
        self.recorded.setdefault(_CallSite(layer, function, tuple(output.shape[1:])), []).append(output)


def _gradients(loss: Tensor, recorded: Iterable[list[Tensor]]) -> list[list[Tensor]]:
    """Return the gradients of the loss for the tensors of each call site, without tensors that have no
    gradient."""
    groups = [[tensor for tensor in tensors if tensor.requires_grad] for tensors in recorded]
    flat = [tensor for tensors in groups for tensor in tensors]
    if not flat or not loss.requires_grad:
        return [[] for _ in groups]
    flat_gradients = iter(torch.autograd.grad(loss, flat, allow_unused=True))
    gradients = [[next(flat_gradients) for _ in tensors] for tensors in groups]
    return [[gradient for gradient in group if gradient is not None] for group in gradients]


def _statistics(
    recorded: dict[_CallSite, list[Tensor]], gradients: Sequence[list[Tensor]]
) -> list[ActivationStats]:
    """Return the statistics of each call site; all histograms have the same limits."""
    values = [_concatenate(tensors) for tensors in recorded.values()]
    ranges = [_range(x) for x in values]
    low, high = min((low for low, _ in ranges), default=0.0), max((high for _, high in ranges), default=0.0)
    statistics = []
    for call_site, x, slopes in zip(recorded, values, gradients, strict=True):
        rectified = call_site.function in RECTIFIERS
        clipped = x[x.isfinite()].clamp(low, high)
        statistics.append(
            ActivationStats(
                *call_site,
                float(x.mean()),
                _std(x),
                _std(_concatenate(slopes)) if slopes else None,
                _saturated_fraction(call_site.function, x),
                float((x == 0).float().mean()) if rectified else None,
                float((x == 0).all(0).float().mean()) if rectified else None,
                low,
                high,
                tuple(int(count) for count in torch.histc(clipped, HISTOGRAM_BINS, low, high)),
            )
        )
    return statistics


def _concatenate(tensors: list[Tensor]) -> Tensor:
    """Concatenate all tensors. A single tensor is not copied, because it may be large."""
    return (tensors[0] if len(tensors) == 1 else torch.cat(tensors)).detach().float()


def _range(x: Tensor) -> tuple[float, float]:
    """Return the smallest and largest finite value, at most `HISTOGRAM_STDS` standard deviations from the
    mean."""
    x = x[x.isfinite()]
    if not x.numel():
        return 0.0, 0.0
    mean, radius = float(x.mean()), HISTOGRAM_STDS * _std(x)
    return max(float(x.min()), mean - radius), min(float(x.max()), mean + radius)


def _std(x: Tensor) -> float:
    return float(x.std(correction=0))


def _saturated_fraction(function: str, y: Tensor) -> float | None:
    """Return the fraction of outputs `y` with a small derivative: sigmoid' = y (1 - y), tanh' = 1 - y^2."""
    if function == "sigmoid":
        slope = 4 * y * (1 - y)
    elif function == "tanh":
        slope = 1 - y.square()
    else:
        return None
    return float((slope < SATURATED_SLOPE).float().mean())
