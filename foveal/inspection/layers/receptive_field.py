"""Receptive fields of the positions of a grid, tracked from operation to operation.

A window adds `(kernel - 1) * dilation * jump`, where `jump` is the product of the strides before the window
(Araujo, Norris and Sim 2019). The means and variances of norms depend on more pixels, but are not counted.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from foveal.core.torch_private import aten_operations

aten = torch.ops.aten
AxisSizes = tuple[int, ...]
"""One number for each axis of a grid."""
WindowGeometry = tuple[AxisSizes, AxisSizes]
"""The extent of a window beyond one position, and its stride."""
AVERAGE_POOLING_OPS = (aten.avg_pool1d, aten.avg_pool2d, aten.avg_pool3d)
MAX_POOLING_OPS = (aten.max_pool2d_with_indices, aten.max_pool3d_with_indices)
ADAPTIVE_POOLING_OPS = (
    *aten_operations("_adaptive_avg_pool2d", "_adaptive_avg_pool3d"),
    *(aten.adaptive_max_pool2d, aten.adaptive_max_pool3d),
)
RESHAPE_OPS = (aten.view, *aten_operations("_unsafe_view"))
PADDING_OPS = tuple(
    getattr(aten, name)
    for name in (
        "constant_pad_nd",
        *(f"{kind}_pad{axes}d" for kind in ("reflection", "replication") for axes in (1, 2, 3)),
    )
)


@dataclass(frozen=True)
class ReceptiveField:
    """The receptive field of a tensor with a grid.

    `axes` are the tensor's axes that form the grid. For each axis, `field` is the size of a position's
    receptive field, and `jump` is the distance between the fields of neighboring positions. `flattened_axes`
    are the sizes of axes that were flattened to a single axis, for a product over the last axis.
    """

    axes: AxisSizes
    field: AxisSizes
    jump: AxisSizes
    flattened_axes: AxisSizes = ()

    def after_window(self, extent: AxisSizes, stride: AxisSizes) -> "ReceptiveField":
        """Return the field after a window that spans `extent` positions beyond the first."""
        field = tuple(f + e * j for f, e, j in zip(self.field, extent, self.jump, strict=True))
        return replace(self, field=field, jump=tuple(j * s for j, s in zip(self.jump, stride, strict=True)))


class ReceptiveFieldTracker:
    """Tracks the receptive fields of all tensors computed from an input (B, C, ...), whose grid is the axes
    after C."""

    def __init__(self, x: Tensor):
        # Tensors are kept, so that no other tensor gets the same id. None: positions may depend on anything.
        self._known: dict[int, tuple[Tensor, ReceptiveField | None]] = {}
        axes = tuple(range(2, x.dim()))
        self._known[id(x)] = x, ReceptiveField(axes, (1,) * len(axes), (1,) * len(axes)) if axes else None

    def size_of(self, x: Tensor) -> AxisSizes:
        """Return the receptive field of a position of `x`. Empty if `x` is not a grid, or may depend on the
        whole input."""
        field = self._known.get(id(x), (x, None))[1]
        return () if field is None or field.flattened_axes else field.field

    def follow(self, operation: Any, args: tuple[Any, ...], result: Any) -> None:
        """Record the fields of the results of a PyTorch operation (an overload packet)."""
        inputs = [item for arg in args for item in (arg if isinstance(arg, (tuple, list)) else (arg,))]
        known = [self._known[id(item)] for item in inputs if id(item) in self._known]
        for y in result if isinstance(result, (tuple, list)) else (result,):
            if known and isinstance(y, Tensor):
                self._known[id(y)] = y, _receptive_field(operation, args, y, known)


def _receptive_field(
    operation: Any, args: tuple[Any, ...], y: Tensor, known: list[Any]
) -> ReceptiveField | None:
    """Return the field of an operation's result `y` from the fields of its inputs. None for an unknown
    operation."""
    if any(field is None for _, field in known):
        return None
    x, field = next(((tensor, field) for tensor, field in known if tensor.shape == y.shape), known[0])
    if any(other.axes != field.axes or other.flattened_axes != field.flattened_axes for _, other in known):
        return None
    widest = tuple(max(sizes) for sizes in zip(*(other.field for _, other in known), strict=True))
    field = replace(field, field=widest)
    if field.flattened_axes:
        return _flattened_field(operation, y, field)
    axes = _permuted_axes(operation, args, x, field.axes)
    if axes is not None:
        return replace(field, axes=axes)
    if (
        operation in RESHAPE_OPS
        and y.dim() == 2
        and field.axes[-1] < x.dim() - 1
        and y.shape[1] == x.shape[-1]
    ):
        return replace(field, flattened_axes=tuple(x.shape[:-1]))
    window = _op_window(operation, args, x, y, field.axes)
    return None if window is None else field.after_window(*window)


def _flattened_field(operation: Any, y: Tensor, receptive_field: ReceptiveField) -> ReceptiveField | None:
    """Return the field while all positions are on a single axis, until a reshape separates the axes again."""
    if operation in RESHAPE_OPS:
        return (
            replace(receptive_field, flattened_axes=())
            if y.shape[:-1] == receptive_field.flattened_axes
            else None
        )
    rows = torch.Size(receptive_field.flattened_axes).numel()
    return receptive_field if y.dim() == 2 and len(y) == rows and operation is not aten.t else None


def _permuted_axes(operation: Any, args: tuple[Any, ...], x: Tensor, axes: AxisSizes) -> AxisSizes | None:
    """Return the grid's axes after an operation that permutes axes. None for other operations."""
    order = list(range(x.dim()))
    if operation is aten.permute:
        order = [axis % x.dim() for axis in args[1]]
    elif operation is aten.transpose:
        first, second = (axis % x.dim() for axis in args[1:3])
        order[first], order[second] = order[second], order[first]
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
    """Return the window of `x` that a position of `y` depends on. None if the window may be all of `x`."""
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
    no_extent = (0,) * len(axes)
    if operation is aten.slice:
        step = args[4] if len(args) > 4 else 1
        return no_extent, tuple(step if axis == args[1] else 1 for axis in axes)
    if operation in PADDING_OPS or all(x.shape[axis] == y.shape[axis] for axis in axes):
        return no_extent, (1,) * len(axes)
    return None


def _kernel_window(
    x: Tensor, axes: AxisSizes, kernel: Any, stride: Any, dilation: Any
) -> WindowGeometry | None:
    """Return the window of a kernel over the last axes. Each argument is a single number, or a number per
    axis."""
    count = len(kernel)
    indices = [axis - (x.dim() - count) for axis in axes]
    if min(indices) < 0:
        return None
    sides, strides, dilations = (list(sizes) * (count // len(sizes)) for sizes in (kernel, stride, dilation))
    return tuple((sides[i] - 1) * dilations[i] for i in indices), tuple(strides[i] for i in indices)
