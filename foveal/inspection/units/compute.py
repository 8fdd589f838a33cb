"""What the units of a deeper layer respond to: the images that move each most, and which pixels of them, by
guided backpropagation (Springenberg et al. 2015, 3.4).

    g_l = g_(l+1) * [x_l > 0] * [g_(l+1) > 0]          behind each rectifier; elsewhere the gradient

It draws edges that could move a unit, and hardly depends on what the layer itself has learned (Adebayo et al.
2018; Sixt et al. 2020). So there is a control: the same places through a layer whose weights are drawn anew.
"""

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from foveal.core.progress import ProgressCallback, iterate_batches
from foveal.inspection.activations.compute import FUSED_OPS
from foveal.ops.jit.dispatch import reference_only
from foveal.training.protocols import Batches

CAVEAT = (
    "guided backpropagation draws edges that could move a unit; where it is as much alike through a layer of "
    "random weights, it says nothing of what the unit has learned"
)
BATCH_SIZE = 8
"""Images whose maps are in memory together."""
_RECTIFIERS = (torch.ops.aten.threshold_backward, torch.ops.aten.hardtanh_backward)
_POOLING = torch.ops.aten.max_pool2d_with_indices_backward


class UnitResponse(NamedTuple):
    """The largest activation of a unit in an image, `row` of the examples; `position` in the layer's map."""

    value: float
    row: int
    position: tuple[int, int]


class PixelWindow(NamedTuple):
    """The pixels that a place sees, from the first to behind the last."""

    top: int
    bottom: int
    left: int
    right: int


class _GuidedReLU(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Gradients go back through rectifiers by the guided rule; or all of them, as if there were none, and to
    every place of a window of which the largest is taken."""

    def __init__(self, guided: bool):
        super().__init__()  # type: ignore[no-untyped-call]
        self.guided = guided

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function.overloadpacket in _RECTIFIERS:
            if not self.guided:
                return args[0].clone()
            args = (args[0].clamp(min=0), *args[1:])
        if function.overloadpacket is _POOLING and not self.guided:
            gradient, x, kernel, stride, padding, _, up, _ = args
            return torch.ops.aten.avg_pool2d_backward(gradient, x, kernel, stride, padding, up, True, None)
        return function(*args, **(kwargs or {}))


def feature_maps(model: Any, layer: str, images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D h w"]:
    """The output of a layer of the model's encoder, by its name; ValueError if that is no map."""
    kept: list[Any] = []
    hook = model.get_submodule(layer).register_forward_hook(lambda _, given, output: kept.append(output))
    try:
        model.encoder(images, None)
    finally:
        hook.remove()
    if not kept or not isinstance(kept[0], Tensor) or kept[0].dim() != 4:
        raise ValueError(f"{layer} makes no map of an image")
    return kept[0]


def top_responses(
    model: Any, layer: str, units: Sequence[int], batches: Batches, k: int, progress: ProgressCallback
) -> list[list[UnitResponse]]:
    """Of each unit the `k` images of an order that move it most, the strongest first; each counts once."""
    device, found = next(model.parameters()).device, [list[UnitResponse]() for _ in units]
    for batch in iterate_batches(batches, progress):
        with torch.inference_mode():
            maps = feature_maps(model, layer, batch.columns["source"].to(device))[:, list(units)].float()
        values, places = maps.flatten(2).max(2)
        for unit, responses in enumerate(found):
            columns = batch.rows.tolist(), values[:, unit].tolist(), places[:, unit].tolist()
            responses += [
                UnitResponse(value, row, divmod(place, maps.shape[3]))
                for row, value, place in zip(*columns, strict=True)
            ]
            responses.sort(key=lambda one: (-one.value, one.row))
            del responses[k:]
    return found


def guided_backprop(
    model: Any,
    layer: str,
    images: Float[Tensor, "B C H W"],
    units: Int[Tensor, " B"],
    positions: Int[Tensor, "B 2"],
    rule: bool = True,
) -> Float[Tensor, "B C H W"]:
    """What reaches the pixels of each image from one unit of a map at one place; without the guided `rule` as
    if every rectifier were open, so that it is zero only where that place does not look."""
    pixels = images.detach().clone().requires_grad_()
    with torch.enable_grad(), reference_only(*FUSED_OPS), _GuidedReLU(rule):
        maps = feature_maps(model, layer, pixels)
        chosen = maps[torch.arange(len(maps)), units, positions[:, 0], positions[:, 1]]
        (found,) = torch.autograd.grad(chosen.sum(), pixels)
    return found.float().cpu()


def receptive_windows(
    model: Any, layer: str, images: Float[Tensor, "B C H W"], positions: Int[Tensor, "B 2"]
) -> list[PixelWindow]:
    """What each place of a layer's map sees of its image."""
    first = torch.zeros(len(positions), dtype=torch.int64)
    found = []
    for one in guided_backprop(model, layer, images, first, positions, rule=False):
        rows, columns = one.abs().sum((0, 2)).nonzero(), one.abs().sum((0, 1)).nonzero()
        found.append(
            PixelWindow(int(rows.min()), int(rows.max()) + 1, int(columns.min()), int(columns.max()) + 1)
        )
    return found


def randomized_copy(model: nn.Module, layer: str) -> nn.Module:
    """A copy whose weights of that layer are random, always the same."""
    found = copy.deepcopy(model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for part in found.get_submodule(layer).modules():
            reset = getattr(part, "reset_parameters", None)
            if reset is not None:
                reset()
    return found


def most_active_units(
    model: Any, layer: str, images: Float[Tensor, "B C H W"], positions: Int[Tensor, "B 2"]
) -> Int[Tensor, " B"]:
    """The unit with the largest activation at each place."""
    with torch.inference_mode():
        maps = feature_maps(model, layer, images)
    return maps[torch.arange(len(maps)), :, positions[:, 0], positions[:, 1]].argmax(1)


class GuidedSignals(NamedTuple):
    """Of some responses, an image each: what reaches its pixels from the unit; what does through a layer
    drawn anew, from the unit that is busiest there; and what of it that place sees."""

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
    """Of the unit at the place of each image."""
    other, own, control, seen = (
        randomized_copy(model, layer),
        list[Tensor](),
        list[Tensor](),
        list[PixelWindow](),
    )
    given = images, torch.tensor(units), torch.tensor(positions)
    for some, chosen, where in zip(*(torch.split(part, BATCH_SIZE) for part in given), strict=True):
        own.append(guided_backprop(model, layer, some, chosen, where))
        control.append(
            guided_backprop(other, layer, some, most_active_units(other, layer, some, where), where)
        )
        seen += receptive_windows(model, layer, some, where)
    return GuidedSignals(torch.cat(own), torch.cat(control), seen)


def mean_correlation(guided_signals: GuidedSignals) -> float | None:
    """The mean correlation of where the two signals are large, over the pixels of each window; None where
    there is none, as of windows of one pixel."""
    each = []
    for one, other, window in zip(*guided_signals, strict=True):
        sizes = [
            part.abs().sum(0)[window.top : window.bottom, window.left : window.right] for part in (one, other)
        ]
        if min(float(size.std(correction=0)) for size in sizes) > 0:
            each.append(float(torch.corrcoef(torch.stack([size.flatten() for size in sizes]))[0, 1]))
    return sum(each) / len(each) if each else None
