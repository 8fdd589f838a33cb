"""How much of the input a place of a grid sees, followed from operation to operation.

A window adds `(kernel - 1) * dilation * jump`, where `jump` is the product of the strides before it (Araujo,
Norris and Sim 2019). What a norm's mean and variance see beside that is left out.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
Places = tuple[int, ...]
"""One number for each axis of a grid."""
Window = tuple[Places, Places]
"""How many places are seen beside one, and the stride."""
POOLINGS = (aten.avg_pool1d, aten.avg_pool2d, aten.avg_pool3d)
MAXIMA = (aten.max_pool2d_with_indices, aten.max_pool3d_with_indices)
ADAPTIVE = (
    *(aten._adaptive_avg_pool2d, aten._adaptive_avg_pool3d),
    *(aten.adaptive_max_pool2d, aten.adaptive_max_pool3d),
)
RESHAPES = (aten.view, aten._unsafe_view)
PADDINGS = tuple(
    getattr(aten, name)
    for name in (
        "constant_pad_nd",
        *(f"{kind}_pad{axes}d" for kind in ("reflection", "replication") for axes in (1, 2, 3)),
    )
)


@dataclass(frozen=True)
class Sight:
    """Of a tensor with a grid: which of its axes are the grid's, what a place sees along each, and how far
    from that the next place's sight lies. `leading` are axes that stand as one, for a product over the last.
    """

    axes: Places
    field: Places
    jump: Places
    leading: Places = ()

    def through(self, reach: Places, stride: Places) -> "Sight":
        """Behind a window that sees `reach` places beside one."""
        field = tuple(f + r * j for f, r, j in zip(self.field, reach, self.jump, strict=True))
        return replace(self, field=field, jump=tuple(j * s for j, s in zip(self.jump, stride, strict=True)))


class Fields:
    """The sight of all that came of an input (B, C, ...), whose axes from the third on are a grid."""

    def __init__(self, x: Tensor):
        # Tensors are kept, so that no other gets the id of one. None: it may see anything.
        self._known: dict[int, tuple[Tensor, Sight | None]] = {}
        axes = tuple(range(2, x.dim()))
        self._known[id(x)] = x, Sight(axes, (1,) * len(axes), (1,) * len(axes)) if axes else None

    def of(self, x: Tensor) -> Places:
        """What a place of `x` sees; empty if `x` is no grid, or may see anything."""
        sight = self._known.get(id(x), (x, None))[1]
        return () if sight is None or sight.leading else sight.field

    def follow(self, operation: Any, args: tuple[Any, ...], result: Any) -> None:
        """Note what an operation of torch's (an overload packet) has made."""
        parts = [part for arg in args for part in (arg if isinstance(arg, (tuple, list)) else (arg,))]
        known = [self._known[id(part)] for part in parts if id(part) in self._known]
        for y in result if isinstance(result, (tuple, list)) else (result,):
            if known and isinstance(y, Tensor):
                self._known[id(y)] = y, _sight(operation, args, y, known)


def _sight(operation: Any, args: tuple[Any, ...], y: Tensor, known: list[Any]) -> Sight | None:
    if any(sight is None for _, sight in known):
        return None
    x, sight = next((one for one in known if one[0].shape == y.shape), known[0])
    if any(other.axes != sight.axes or other.leading != sight.leading for _, other in known):
        return None
    widest = tuple(max(each) for each in zip(*(other.field for _, other in known), strict=True))
    sight = replace(sight, field=widest)
    if sight.leading:
        return _of_rows(operation, y, sight)
    axes = _moved(operation, args, x, sight.axes)
    if axes is not None:
        return replace(sight, axes=axes)
    if operation in RESHAPES and y.dim() == 2 and sight.axes[-1] < x.dim() - 1 and y.shape[1] == x.shape[-1]:
        return replace(sight, leading=tuple(x.shape[:-1]))
    window = _window(operation, args, x, y, sight.axes)
    return None if window is None else sight.through(*window)


def _of_rows(operation: Any, y: Tensor, sight: Sight) -> Sight | None:
    """Where all places stand in one axis: products of each, until the axes are apart again."""
    if operation in RESHAPES:
        return replace(sight, leading=()) if y.shape[:-1] == sight.leading else None
    rows = torch.Size(sight.leading).numel()
    return sight if y.dim() == 2 and len(y) == rows and operation is not aten.t else None


def _moved(operation: Any, args: tuple[Any, ...], x: Tensor, axes: Places) -> Places | None:
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


def _window(operation: Any, args: tuple[Any, ...], x: Tensor, y: Tensor, axes: Places) -> Window | None:
    """That through which a place of `y` sees `x`; None where it may see any."""
    if operation is aten.convolution and not args[6]:
        return _windows(x, axes, args[1].shape[2:], args[3], args[5])
    if operation in POOLINGS or operation in MAXIMA:
        stride = args[2] if len(args) > 2 and args[2] else args[1]
        dilation = args[4] if operation in MAXIMA and len(args) > 4 else (1,)
        return _windows(x, axes, args[1], stride, dilation)
    if y.dim() != x.dim():
        return None
    if operation in ADAPTIVE or operation is aten.mean:
        shares = tuple(-(-x.shape[axis] // y.shape[axis]) for axis in axes)
        return tuple(share - 1 for share in shares), shares
    still = (0,) * len(axes)
    if operation is aten.slice:
        step = args[4] if len(args) > 4 else 1
        return still, tuple(step if axis == args[1] else 1 for axis in axes)
    if operation in PADDINGS or all(x.shape[axis] == y.shape[axis] for axis in axes):
        return still, (1,) * len(axes)
    return None


def _windows(x: Tensor, axes: Places, kernel: Any, stride: Any, dilation: Any) -> Window | None:
    """Of windows over the last axes; numbers are one for each of these, or one for all."""
    count = len(kernel)
    places = [axis - (x.dim() - count) for axis in axes]
    if min(places) < 0:
        return None
    sides, steps, gaps = (list(given) * (count // len(given)) for given in (kernel, stride, dilation))
    return tuple((sides[i] - 1) * gaps[i] for i in places), tuple(steps[i] for i in places)
