"""The images that most activate units of a deeper layer, and guided backpropagation to their pixels.

Guided backpropagation (Springenberg et al. 2015, section 3.4) changes the gradient at each rectifier:

    g_l = g_(l+1) * [x_l > 0] * [g_(l+1) > 0]

The result shows edges that could activate a unit, and depends little on what the layer itself has learned
(Adebayo et al. 2018; Sixt et al. 2020). A control is therefore computed too: the same positions, through a
copy of the layer with random weights.
"""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.progress import ProgressCallback, iterate_batches
from foveal.inspection.activations.record import FUSED_OPS
from foveal.inspection.operation_mode import OperationMode
from foveal.ops.jit.dispatch import reference_only
from foveal.training.protocols import Batches

CAVEAT = (
    "guided backpropagation shows edges that could activate a unit; where a layer of random weights shows "
    "much the same, it says nothing about what the unit has learned"
)
BATCH_SIZE = 8
"""Images whose feature maps are in memory together."""
_RECTIFIERS = (torch.ops.aten.threshold_backward, torch.ops.aten.hardtanh_backward)
_POOLING = torch.ops.aten.max_pool2d_with_indices_backward


class UnitResponse(NamedTuple):
    """The largest activation of a unit in image `row` of the examples, and its `position` in the
    feature map."""

    value: float
    row: int
    position: tuple[int, int]


class PixelWindow(NamedTuple):
    """The pixels in the receptive field of a position; `bottom` and `right` are excluded."""

    top: int
    bottom: int
    left: int
    right: int


class _GuidedReLU(OperationMode):  # type: ignore[no-untyped-call]
    """Changes gradients while they are computed.

    `guided` applies the guided rule at rectifiers. Otherwise rectifiers pass all gradients, as if they were
    the identity, and max pooling passes them to every position of its window.
    """

    def __init__(self, guided: bool):
        super().__init__()
        self.guided = guided

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function.overloadpacket in _RECTIFIERS:
            if not self.guided:
                return args[0].clone()
            args = (args[0].clamp(min=0), *args[1:])
        if function.overloadpacket is _POOLING and not self.guided:
            gradient, x, kernel, stride, padding, _, ceil, _ = args
            return torch.ops.aten.avg_pool2d_backward(gradient, x, kernel, stride, padding, ceil, True, None)
        return function(*args, **(kwargs or {}))


def feature_maps(model: Any, layer: str, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
    """Return the output of a layer of the model's encoder, by the layer's name.

    Raises: ValueError: the output is not a feature map.
    """
    outputs: list[Any] = []
    hook = model.get_submodule(layer).register_forward_hook(lambda _, inputs, output: outputs.append(output))
    try:
        model.encoder(images, None)
    finally:
        hook.remove()
    if not outputs or not isinstance(outputs[0], Tensor) or outputs[0].dim() != 4:
        raise ValueError(f"{layer} makes no feature map of an image")
    return outputs[0]


def top_responses(
    model: Any, layer: str, units: Sequence[int], batches: Batches, k: int, progress: ProgressCallback
) -> list[list[UnitResponse]]:
    """Return for each unit the `k` images that activate the unit most, the strongest response first.

    An image counts once per unit, at the position of the unit's largest activation.
    """
    device, strongest = next(model.parameters()).device, [list[UnitResponse]() for _ in units]
    for batch in iterate_batches(batches, progress):
        with torch.inference_mode():
            maps = feature_maps(model, layer, batch.columns["source"].to(device))[:, list(units)].float()
        values, positions = maps.flatten(2).max(2)
        for unit, responses in enumerate(strongest):
            columns = batch.rows.tolist(), values[:, unit].tolist(), positions[:, unit].tolist()
            responses += [
                UnitResponse(value, row, divmod(position, maps.shape[3]))
                for row, value, position in zip(*columns, strict=True)
            ]
            responses.sort(key=lambda response: (-response.value, response.row))
            del responses[k:]
    return strongest


def guided_backprop(
    model: Any,
    layer: str,
    images: Float[Tensor, "B C H W"],
    units: Int[Tensor, " B"],
    positions: Int[Tensor, "B 2"],
    rule: bool = True,
) -> Float[Tensor, "B C H W"]:
    """Return the guided backpropagation signal at the pixels of each image, from a unit at a position of the
    feature map.

    Without the guided `rule`, every rectifier passes all gradients, so the signal is zero only outside the
    receptive field.
    """
    pixels = images.detach().clone().requires_grad_()
    with torch.enable_grad(), reference_only(*FUSED_OPS), _GuidedReLU(rule):
        maps = feature_maps(model, layer, pixels)
        activations = maps[torch.arange(len(maps)), units, positions[:, 0], positions[:, 1]]
        (signal,) = torch.autograd.grad(activations.sum(), pixels)
    return signal.float().cpu()


def receptive_windows(
    model: Any, layer: str, images: Float[Tensor, "B C H W"], positions: Int[Tensor, "B 2"]
) -> list[PixelWindow]:
    """Return the receptive field of one position of a feature map in each image."""
    first_unit = torch.zeros(len(positions), dtype=torch.int64)
    windows = []
    for signal in guided_backprop(model, layer, images, first_unit, positions, rule=False):
        rows, columns = signal.abs().sum((0, 2)).nonzero(), signal.abs().sum((0, 1)).nonzero()
        windows.append(
            PixelWindow(int(rows.min()), int(rows.max()) + 1, int(columns.min()), int(columns.max()) + 1)
        )
    return windows


def randomized_copy(model: nn.Module, layer: str) -> nn.Module:
    """Return a copy of the model in which a layer has random weights, the same in every call."""
    randomized = copy.deepcopy(model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for module in randomized.get_submodule(layer).modules():
            reset = getattr(module, "reset_parameters", None)
            if reset is not None:
                reset()
    return randomized


def most_active_units(
    model: Any, layer: str, images: Float[Tensor, "B C H W"], positions: Int[Tensor, "B 2"]
) -> Int[Tensor, " B"]:
    """Return the unit with the largest activation at each position."""
    with torch.inference_mode():
        maps = feature_maps(model, layer, images)
    return maps[torch.arange(len(maps)), :, positions[:, 0], positions[:, 1]].argmax(1)


class GuidedSignals(NamedTuple):
    """The signals of B responses, with one image per response.

    `guided` is the signal of the unit itself. `control` goes through a layer of random weights, from the most
    active unit at the same position. `windows` are the receptive fields of the positions.
    """

    guided: Float[Tensor, "B C H W"]
    control: Float[Tensor, "B C H W"]
    windows: list[PixelWindow]


def guided_signals(
    model: Any,
    layer: str,
    images: Float[Tensor, "B C H W"],
    units: Sequence[int],
    positions: Sequence[tuple[int, int]],
) -> GuidedSignals:
    """Return the signals of each image from its unit at its position."""
    randomized = randomized_copy(model, layer)
    guided, control, windows = list[Tensor](), list[Tensor](), list[PixelWindow]()
    columns = images, torch.tensor(units), torch.tensor(positions)
    for x, unit, position in zip(*(torch.split(column, BATCH_SIZE) for column in columns), strict=True):
        guided.append(guided_backprop(model, layer, x, unit, position))
        active = most_active_units(randomized, layer, x, position)
        control.append(guided_backprop(randomized, layer, x, active, position))
        windows += receptive_windows(model, layer, x, position)
    return GuidedSignals(torch.cat(guided), torch.cat(control), windows)


def mean_correlation(guided_signals: GuidedSignals) -> float | None:
    """Return the mean correlation of the magnitudes of signal and control over the pixels of each window.

    Return None if there is no correlation, as for windows of a single pixel.
    """
    correlations = []
    for guided, control, window in zip(*guided_signals, strict=True):
        sizes = [
            signal.abs().sum(0)[window.top : window.bottom, window.left : window.right]
            for signal in (guided, control)
        ]
        if min(float(size.std(correction=0)) for size in sizes) > 0:
            correlations.append(float(torch.corrcoef(torch.stack([size.flatten() for size in sizes]))[0, 1]))
    return sum(correlations) / len(correlations) if correlations else None
