"""How much of the input a place of a grid sees, followed from operation to operation.

A window adds `(kernel - 1) * dilation * jump`, where `jump` is the product of the strides before it (Araujo,
Norris and Sim 2019). What a norm's mean and variance see beside that is left out.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
AxisSizes = tuple[int, ...]
"""One number for each axis of a grid."""
WindowGeometry = tuple[AxisSizes, AxisSizes]
"""How many places are seen beside one, and the stride."""
AVERAGE_POOLING_OPS = (aten.avg_pool1d, aten.avg_pool2d, aten.avg_pool3d)
MAX_POOLING_OPS = (aten.max_pool2d_with_indices, aten.max_pool3d_with_indices)
ADAPTIVE_POOLING_OPS = (
    *(aten._adaptive_avg_pool2d, aten._adaptive_avg_pool3d),
    *(aten.adaptive_max_pool2d, aten.adaptive_max_pool3d),
)
RESHAPE_OPS = (aten.view, aten._unsafe_view)
PADDING_OPS = tuple(
    getattr(aten, name)
    for name in (
        "constant_pad_nd",
        *(f"{kind}_pad{axes}d" for kind in ("reflection", "replication") for axes in (1, 2, 3)),
    )
)


@dataclass(frozen=True)
class ReceptiveField:
    """Of a tensor with a grid: which of its axes are the grid's, what a place sees along each, and how far
    from that the next place's sight lies. `flattened_axes` are axes that stand as one, for a product over
    the last.
    """

    axes: AxisSizes
    field: AxisSizes
    jump: AxisSizes
    flattened_axes: AxisSizes = ()

    def after_window(self, extent: AxisSizes, stride: AxisSizes) -> "ReceptiveField":
        """Behind a window that sees `extent` places beside one."""
        field = tuple(f + r * j for f, r, j in zip(self.field, extent, self.jump, strict=True))
        return replace(self, field=field, jump=tuple(j * s for j, s in zip(self.jump, stride, strict=True)))


class ReceptiveFieldTracker:
    """The sight of all that came of an input (B, C, ...), whose axes from the third on are a grid."""

    def __init__(self, x: Tensor):
        # Tensors are kept, so that no other gets the id of one. None: it may see anything.
        self._known: dict[int, tuple[Tensor, ReceptiveField | None]] = {}
        axes = tuple(range(2, x.dim()))
        self._known[id(x)] = x, ReceptiveField(axes, (1,) * len(axes), (1,) * len(axes)) if axes else None

    def size_of(self, x: Tensor) -> AxisSizes:
        """What a place of `x` sees; empty if `x` is no grid, or may see anything."""
        sight = self._known.get(id(x), (x, None))[1]
        return () if sight is None or sight.flattened_axes else sight.field

    def follow(self, operation: Any, args: tuple[Any, ...], result: Any) -> None:
        """Note what an operation of torch's (an overload packet) has made."""
        parts = [part for arg in args for part in (arg if isinstance(arg, (tuple, list)) else (arg,))]
        known = [self._known[id(part)] for part in parts if id(part) in self._known]
        for y in result if isinstance(result, (tuple, list)) else (result,):
            if known and isinstance(y, Tensor):
                self._known[id(y)] = y, _receptive_field(operation, args, y, known)


def _receptive_field(
    operation: Any, args: tuple[Any, ...], y: Tensor, known: list[Any]
) -> ReceptiveField | None:
    if any(sight is None for _, sight in known):
        return None
    x, sight = next((one for one in known if one[0].shape == y.shape), known[0])
    if any(other.axes != sight.axes or other.flattened_axes != sight.flattened_axes for _, other in known):
        return None
    widest = tuple(max(each) for each in zip(*(other.field for _, other in known), strict=True))
    sight = replace(sight, field=widest)
    if sight.flattened_axes:
        return _flattened_field(operation, y, sight)
    axes = _permuted_axes(operation, args, x, sight.axes)
    if axes is not None:
        return replace(sight, axes=axes)
    if (
        operation in RESHAPE_OPS
        and y.dim() == 2
        and sight.axes[-1] < x.dim() - 1
        and y.shape[1] == x.shape[-1]
    ):
        return replace(sight, flattened_axes=tuple(x.shape[:-1]))
    window = _op_window(operation, args, x, y, sight.axes)
    return None if window is None else sight.after_window(*window)


def _flattened_field(operation: Any, y: Tensor, receptive_field: ReceptiveField) -> ReceptiveField | None:
    """Where all places stand in one axis: products of each, until the axes are apart again."""
    if operation in RESHAPE_OPS:
        return (
            replace(receptive_field, flattened_axes=())
            if y.shape[:-1] == receptive_field.flattened_axes
            else None
        )
    rows = torch.Size(receptive_field.flattened_axes).numel()
    return receptive_field if y.dim() == 2 and len(y) == rows and operation is not aten.t else None


def _permuted_axes(operation: Any, args: tuple[Any, ...], x: Tensor, axes: AxisSizes) -> AxisSizes | None:
    """Where the grid's axes stand behind an operation that moves axes; None for others."""
    order = list(range(x.dim()))
    if operation is aten.permute:
        order = [axis % x.dim() for axis in args[1]]
    elif operation is aten.transpose:
        one, other = (axis % x.dim() for axis in args[1:3])
        order[one], order[other] = order[other], order[one]
    elif operation is aten.unsqueeze:
        order.insert(args[1] % (x.dim() + 1), -1)
    elif operation is aten.squeeze and x.shape[args[1]] == 1:
        order.pop(args[1] % x.dim())
    else:
        return None
    return tuple(order.index(axis) for axis in axes) if set(axes) <= set(order) else None


def _op_window(
    operation: Any, args: tuple[Any, ...], x: Tensor, y: Tensor, axes: AxisSizes
) -> WindowGeometry | None:
    """That through which a place of `y` sees `x`; None where it may see any."""
    if operation is aten.convolution and not args[6]:
        return _kernel_window(x, axes, args[1].shape[2:], args[3], args[5])
    if operation in AVERAGE_POOLING_OPS or operation in MAX_POOLING_OPS:
        stride = args[2] if len(args) > 2 and args[2] else args[1]
        dilation = args[4] if operation in MAX_POOLING_OPS and len(args) > 4 else (1,)
        return _kernel_window(x, axes, args[1], stride, dilation)
    if y.dim() != x.dim():
        return None
    if operation in ADAPTIVE_POOLING_OPS or operation is aten.mean:
        shares = tuple(-(-x.shape[axis] // y.shape[axis]) for axis in axes)
        return tuple(share - 1 for share in shares), shares
    still = (0,) * len(axes)
    if operation is aten.slice:
        step = args[4] if len(args) > 4 else 1
        return still, tuple(step if axis == args[1] else 1 for axis in axes)
    if operation in PADDING_OPS or all(x.shape[axis] == y.shape[axis] for axis in axes):
        return still, (1,) * len(axes)
    return None


def _kernel_window(
    x: Tensor, axes: AxisSizes, kernel: Any, stride: Any, dilation: Any
) -> WindowGeometry | None:
    """Of windows over the last axes; numbers are one for each of these, or one for all."""
    count = len(kernel)
    places = [axis - (x.dim() - count) for axis in axes]
    if min(places) < 0:
        return None
    sides, steps, gaps = (list(given) * (count // len(given)) for given in (kernel, stride, dilation))
    return tuple((sides[i] - 1) * gaps[i] for i in places), tuple(steps[i] for i in places)
