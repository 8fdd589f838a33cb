"""Convolution by 3x3 filters at stride 1, most of the work of VGG and ResNet: torch's, and Winograd's with a
quarter of the products."""

from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from foveal.ops.jit.dispatch import choose
from foveal.ops.jit.launch import Kernel

FREQUENCIES, PANEL, LANES = 36, 32, 16
TILES = 32
"""Tiles of a block: what is between the transforms of so many lies in a core's own cache (2 MiB)."""
MORE, MANY = 64, 1 << 13
"""Where that has no room for so many filters, they are read again for each block: then of more tiles."""
SQUARE = 128
"""Most channels of each side whose filters' gradients are summed at once."""
FEWEST = 64
"""Tiles that are worth the transform of the filters."""
# Lavin and Gray 2016, eq. 14: for F(4x4, 3x3), at the points 0, 1, -1, 2, -2 and infinity.
G = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)

_forward, _backward = Kernel("winograd", "forward"), Kernel("winograd", "backward")


def convolution3x3(
    x: Float[Tensor, "B C H W"],
    weight: Float[Tensor, "D C 3 3"],
    bias: Float[Tensor, " D"] | None = None,
    padding: int = 1,
) -> Float[Tensor, "B D h w"]:
    """`y_ij = b + sum_rs W_rs x_(i+r-p, j+s-p)`, zeros outside of the image; h = H + 2 p - 2.

    The fast path makes tiles of 4x4 outputs, `y = A^T ((G w G^T) * (B^T x B)) A`, where `*` is a product of
    matrices over channels at each of 36 places (Lavin and Gray 2016, "Fast algorithms for convolutional
    neural networks"). Rounding is some ten times that of the direct sum, 1e-5 of the largest output. A NaN
    spreads over its tile.
    """
    if choose("convolution3x3", "winograd", _usable(x, weight, padding)):
        given = weight.new_zeros(len(weight)) if bias is None else bias
        return _Winograd.apply(x, weight, given, padding)  # type: ignore[no-untyped-call]
    return F.conv2d(x, weight, bias, padding=padding)


def _usable(x: Tensor, weight: Tensor, padding: int) -> bool:
    """Where the kernels can compute, and are faster than torch's convolution."""
    (N, C, H, W), D = x.shape, len(weight)
    if C % 8 or D % 8 or min(_share(C), _share(D)) < LANES or min(H, W) + 2 * padding < 3 or padding > 2:
        return False
    h, w = _sides(x, padding)
    tiles = _tiles(N, h, w)
    pays = tiles >= FEWEST and N * h * w >= 8 * tiles and _wide() and not torch.is_autocast_enabled("cpu")
    return pays and _forward.usable(x, weight) and _backward.usable()


def _sides(x: Tensor, padding: int) -> tuple[int, int]:
    """Rows and columns of the output."""
    return x.shape[2] + 2 * padding - 2, x.shape[3] + 2 * padding - 2


def _tiles(N: int, h: int, w: int) -> int:
    return N * -(-h // 4) * -(-w // 4)


@cache
def _wide() -> bool:
    """Registers of 8 or 16 numbers; with narrower ones it was never measured."""
    return torch.backends.cpu.get_cpu_capability().startswith(("AVX2", "AVX512"))


class _Winograd(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, padding: int) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        ctx.save_for_backward(x, weight)
        ctx.padding = padding
        return _convolved(x, weight, bias, padding)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        dy, dx, dweight, dbias = dy.contiguous(memory_format=torch.channels_last), None, None, None
        if ctx.needs_input_grad[0]:
            turned = weight.flip(2, 3).transpose(0, 1)
            dx = _convolved(dy, turned, dy.new_zeros(len(turned)), 2 - ctx.padding)
        if ctx.needs_input_grad[1]:
            dweight = _filters_gradient(x, dy, ctx.padding)
        if ctx.needs_input_grad[2]:
            dbias = dy.sum((0, 2, 3))
        return dx, dweight, dbias, None


def _convolved(x: Tensor, weight: Tensor, bias: Tensor, padding: int) -> Tensor:
    (N, C, H, W), D = x.shape, len(weight)
    y = x.new_empty(N, *_sides(x, padding), D).permute(0, 3, 1, 2)
    panels = -(-D // PANEL)
    filters = F.pad(weight, (0,) * 7 + (panels * PANEL - D,)) if D % PANEL else weight
    side_by_side = filters.reshape(panels, PANEL, C, 9).transpose(1, 2).reshape(-1, 9)
    U = _transform() @ side_by_side.T  # (36, panels, C, 32)
    tiles = MORE if C * D > MANY else TILES
    room = FREQUENCIES * (LANES + tiles * (C + panels * PANEL) + 2 * LANES)
    tasks = torch.get_num_threads()
    scratch = x.new_empty(tasks * room)
    _forward(tasks, x, U, y, bias.contiguous(), scratch, room, tiles, N, H, W, C, D, padding)
    return y


def _filters_gradient(x: Tensor, dy: Tensor, padding: int) -> Tensor:
    (N, C, H, W), D = x.shape, dy.shape[1]
    rows, columns = _share(C), _share(D)
    wide = -(-columns // PANEL) * PANEL
    squares = (C // rows) * (D // columns)
    blocks = -(-_tiles(N, *dy.shape[2:]) // TILES)
    shares = min(-(-torch.get_num_threads() // squares), blocks)
    room = FREQUENCIES * (LANES + TILES * (rows + wide) + 2 * LANES)
    scratch = x.new_empty(squares * shares * room)
    dU = x.new_empty(C // rows, D // columns, shares, FREQUENCIES, rows, wide)
    sizes = (N, H, W, C, D, padding, columns, wide, shares)
    _backward(squares * shares, x, dy, dU, rows, scratch, room, TILES, *sizes)
    summed = dU.sum(2) if shares > 1 else dU.squeeze(2)
    dweight = summed.flatten(3).mT @ _transform()  # (C / rows, D / columns, rows wide, 9)
    dweight = dweight.view(C // rows, D // columns, rows, wide, 9)[:, :, :, :columns]
    return dweight.permute(1, 3, 0, 2, 4).reshape(D, C, 3, 3)


@cache
def _share(channels: int) -> int:
    """The most of them, a multiple of 8 that divides all, for one task."""
    return max(some for some in range(8, SQUARE + 1, 8) if channels % some == 0)


@cache
def _transform() -> Tensor:
    """`U = (G (x) G) w`, (36, 9)."""
    g = torch.tensor(G)
    return torch.kron(g, g)
