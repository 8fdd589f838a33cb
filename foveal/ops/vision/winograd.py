"""Convolution with 3x3 filters at stride 1 by Winograd's algorithm.

These convolutions are most of the work of VGG and ResNet. Winograd's algorithm needs a quarter of the
products.
"""

from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from foveal.ops.jit.dispatch import use_fast_path
from foveal.ops.jit.launch import Kernel

TRANSFORM_POINTS, FILTER_PANEL, LANES = 36, 32, 16
TILES_PER_BLOCK = 32
"""Tiles of a block. The data between their transforms fit in a core's own cache (2 MiB)."""
TILES_PER_LARGE_BLOCK, LARGE_FILTERS = 64, 1 << 13
"""Tiles of a block, and the filters from which these are used. Such filters don't fit in the cache, and are
read again for each block."""
MAX_GRADIENT_CHANNELS = 128
"""Maximum number of input or output channels whose filter gradients are summed at once."""
MIN_TILES = 64
"""Tiles from which the transform of the filters pays."""
# Lavin and Gray 2016, eq. 14, for F(4x4, 3x3), at the points 0, 1, -1, 2, -2 and infinity.
FILTER_TRANSFORM = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)

_forward, _backward = Kernel("winograd", "forward"), Kernel("winograd", "backward")


def conv2d_3x3(
    x: Float[Tensor, "B C H W"],
    weight: Float[Tensor, "D C 3 3"],
    bias: Float[Tensor, " D"] | None = None,
    padding: int = 1,
) -> Float[Tensor, "B D h w"]:
    """Return `y_ij = b + sum_rs W_rs x_(i+r-p, j+s-p)`, with zeros outside the image, and h = H + 2 p - 2.

    The fast path computes tiles of 4x4 outputs, `y = A^T ((G w G^T) * (B^T x B)) A`, where `*` is a product
    of matrices over channels at each of 36 points (Lavin and Gray 2016, "Fast algorithms for convolutional
    neural networks"). The rounding error is about ten times that of the direct sum, 1e-5 of the largest
    output. A NaN spreads over its tile.
    """
    if use_fast_path("conv2d_3x3", "winograd", _winograd_usable(x, weight, padding)):
        bias_or_zeros = weight.new_zeros(len(weight)) if bias is None else bias
        return _Winograd.apply(x, weight, bias_or_zeros, padding)  # type: ignore[no-untyped-call]
    return F.conv2d(x, weight, bias, padding=padding)


def _winograd_usable(x: Tensor, weight: Tensor, padding: int) -> bool:
    """Return whether the kernels support this convolution, and are faster than torch's."""
    (N, C, H, W), D = x.shape, len(weight)
    if (
        C % 8
        or D % 8
        or min(_channels_per_task(C), _channels_per_task(D)) < LANES
        or min(H, W) + 2 * padding < 3
        or padding > 2
    ):
        return False
    h, w = _output_size(x, padding)
    tiles = _tile_count(N, h, w)
    worthwhile = (
        tiles >= MIN_TILES
        and N * h * w >= 8 * tiles
        and _has_wide_registers()
        and not torch.is_autocast_enabled("cpu")
    )
    return worthwhile and _forward.usable(x, weight) and _backward.usable()


def _output_size(x: Tensor, padding: int) -> tuple[int, int]:
    """Return rows and columns of the output."""
    return x.shape[2] + 2 * padding - 2, x.shape[3] + 2 * padding - 2


def _tile_count(N: int, h: int, w: int) -> int:
    return N * -(-h // 4) * -(-w // 4)


@cache
def _has_wide_registers() -> bool:
    """Return whether the processor's registers hold 8 or 16 numbers.

    Narrower registers were never measured.
    """
    return torch.backends.cpu.get_cpu_capability().startswith(("AVX2", "AVX512"))


class _Winograd(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, padding: int) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        ctx.save_for_backward(x, weight)
        ctx.padding = padding
        return _winograd_conv(x, weight, bias, padding)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        dy, dx, dweight, dbias = dy.contiguous(memory_format=torch.channels_last), None, None, None
        if ctx.needs_input_grad[0]:
            flipped = weight.flip(2, 3).transpose(0, 1)
            dx = _winograd_conv(dy, flipped, dy.new_zeros(len(flipped)), 2 - ctx.padding)
        if ctx.needs_input_grad[1]:
            dweight = _filter_gradient(x, dy, ctx.padding)
        if ctx.needs_input_grad[2]:
            dbias = dy.sum((0, 2, 3))
        return dx, dweight, dbias, None


def _winograd_conv(x: Tensor, weight: Tensor, bias: Tensor, padding: int) -> Tensor:
    (N, C, H, W), D = x.shape, len(weight)
    y = x.new_empty(N, *_output_size(x, padding), D).permute(0, 3, 1, 2)
    panels = -(-D // FILTER_PANEL)
    filters = F.pad(weight, (0,) * 7 + (panels * FILTER_PANEL - D,)) if D % FILTER_PANEL else weight
    side_by_side = filters.reshape(panels, FILTER_PANEL, C, 9).transpose(1, 2).reshape(-1, 9)
    U = _filter_transform() @ side_by_side.T  # (36, panels, C, 32)
    tiles = TILES_PER_LARGE_BLOCK if C * D > LARGE_FILTERS else TILES_PER_BLOCK
    scratch_size = TRANSFORM_POINTS * (LANES + tiles * (C + panels * FILTER_PANEL) + 2 * LANES)
    tasks = torch.get_num_threads()
    scratch = x.new_empty(tasks * scratch_size)
    _forward(tasks, x, U, y, bias.contiguous(), scratch, scratch_size, tiles, N, H, W, C, D, padding)
    return y


def _filter_gradient(x: Tensor, dy: Tensor, padding: int) -> Tensor:
    (N, C, H, W), D = x.shape, dy.shape[1]
    rows, columns = _channels_per_task(C), _channels_per_task(D)
    padded_columns = -(-columns // FILTER_PANEL) * FILTER_PANEL
    squares = (C // rows) * (D // columns)
    blocks = -(-_tile_count(N, *dy.shape[2:]) // TILES_PER_BLOCK)
    shares = min(-(-torch.get_num_threads() // squares), blocks)
    scratch_size = TRANSFORM_POINTS * (LANES + TILES_PER_BLOCK * (rows + padded_columns) + 2 * LANES)
    scratch = x.new_empty(squares * shares * scratch_size)
    dU = x.new_empty(C // rows, D // columns, shares, TRANSFORM_POINTS, rows, padded_columns)
    sizes = (N, H, W, C, D, padding, columns, padded_columns, shares)
    _backward(squares * shares, x, dy, dU, rows, scratch, scratch_size, TILES_PER_BLOCK, *sizes)
    summed = dU.sum(2) if shares > 1 else dU.squeeze(2)
    dweight = summed.flatten(3).mT @ _filter_transform()  # (C / rows, D / columns, rows wide, 9)
    dweight = dweight.view(C // rows, D // columns, rows, padded_columns, 9)[:, :, :, :columns]
    return dweight.permute(1, 3, 0, 2, 4).reshape(D, C, 3, 3)


@cache
def _channels_per_task(channels: int) -> int:
    """Return the largest multiple of 8 up to MAX_GRADIENT_CHANNELS that divides the channels."""
    return max(size for size in range(8, MAX_GRADIENT_CHANNELS + 1, 8) if channels % size == 0)


@cache
def _filter_transform() -> Tensor:
    """Return `U = (G (x) G) w`, (36, 9), where G is `FILTER_TRANSFORM`."""
    g = torch.tensor(FILTER_TRANSFORM)
    return torch.kron(g, g)
