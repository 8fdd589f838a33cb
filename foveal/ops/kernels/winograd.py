"""Kernel of `ops.vision.winograd`: 3x3 convolution, with 36 products instead of 144 for 16 outputs of a
channel.

Images have channels last. Outputs are computed in tiles of 4x4 positions, from input tiles of 6x6. A
transformed tile has 36 points k, each a matrix product over the channels. Blocks of T tiles go through all
three steps, so that the data between the steps stay in the cache: V (36, T, channels) before the products, M
after them. An additional vector between the points keeps the points from competing for the same part of the
cache.

Sizes: images (N, H, W, C), outputs (N, h, w, D). C and D are multiples of 8, and at least 16. The last 16
channels may overlap those before. A panel is 32 columns of a product.
"""

from foveal.ops.kernels.simd import (
    LANES,
    always_inline,
    broadcast,
    float_pointer,
    fma,
    kernel_function,
    load,
    load_int,
    matmul_8x32,
    store,
)

ROWS, PANEL, TRANSFORM_POINTS = 8, 32, 36


@always_inline
def input_line(x):
    """Return `B^T x` (Lavin and Gray 2016, eq. 14)."""
    a, b, c, d, e, f = x
    s, t = fma(c, broadcast(-4.0), e), fma(b, broadcast(-4.0), d)
    u, v = e - c, (d - b) + (d - b)
    first = fma(a, broadcast(4.0), fma(c, broadcast(-5.0), e))
    last = fma(b, broadcast(4.0), fma(d, broadcast(-5.0), f))
    return first, s + t, s - t, u + v, u - v, last


@always_inline
def output_line(m):
    """Return `A^T m`."""
    a, b, c, d, e, f = m
    s, t, u, v = b + c, b - c, d + e, d - e
    return a + s + u, fma(v, broadcast(2.0), t), fma(u, broadcast(4.0), s), fma(v, broadcast(8.0), t) + f


@always_inline
def gradient_line(dy):
    """Return `A dy`, the gradient of `output_line`."""
    a, b, c, d = dy
    s, t = a + c, b + d
    u, v = fma(c, broadcast(4.0), a), fma(d, broadcast(8.0), b + b)
    return a, s + t, s - t, u + v, u - v, d


@always_inline
def load_padded(x, at, inside):
    """Load a vector, or zeros outside the image."""
    if inside:
        return load(x, at)
    return broadcast(0.0)


@always_inline
def load_4(x, at, stride):
    """Load four vectors at distance `stride`, from `at` on."""
    return load(x, at), load(x, at + stride), load(x, at + 2 * stride), load(x, at + 3 * stride)


@always_inline
def load_6(x, at, stride):
    """Load six vectors at distance `stride`, from `at` on."""
    a, b, c, d = load_4(x, at, stride)
    return a, b, c, d, load(x, at + 4 * stride), load(x, at + 5 * stride)


@kernel_function
def tile_position(tile, down, across):
    """Return the image that contains a tile, and the tile's row and column in the grid of tiles."""
    return tile // (down * across), tile // across % down, tile % across


@kernel_function
def transform_input(x, image, top, left, H, W, C, first, end, line, V, apart):
    """Compute `B^T x B` of the 6x6 positions from (top, left) on, for channels first .. end.

    The results are stored in `V[k apart + channel - first]`.
    """
    for group in range(first, end, LANES):
        e = min(group, end - LANES)
        for r in range(6):
            h = top + r
            start, row = ((image * H + h) * W + left) * C + e, h >= 0 and h < H
            a = load_padded(x, start, row and left >= 0)
            b = load_padded(x, start + C, row and left >= -1 and left + 1 < W)
            c = load_padded(x, start + 2 * C, row and left + 2 < W)
            d = load_padded(x, start + 3 * C, row and left + 3 < W)
            f = load_padded(x, start + 4 * C, row and left + 4 < W)
            g = load_padded(x, start + 5 * C, row and left + 5 < W)
            y = input_line((a, b, c, d, f, g))
            for j in range(6):
                store(line, (r * 6 + j) * LANES, y[j])
        for j in range(6):
            y = input_line(load_6(line, j * LANES, 6 * LANES))
            for r in range(6):
                store(V, (r * 6 + j) * apart + e - first, y[r])


@kernel_function
def transform_output(M, apart, bias, line, y, image, top, left, h, w, D):
    """Compute `A^T m A + b` from `M[k apart + channel]` for the 4x4 positions from (top, left) on."""
    for group in range(0, D, LANES):
        e = min(group, D - LANES)
        for r in range(6):
            z = output_line(load_6(M, 6 * r * apart + e, apart))
            for j in range(4):
                store(line, (r * 4 + j) * LANES, z[j])
        for j in range(min(4, w - left)):
            z = output_line(load_6(line, j * LANES, 4 * LANES))
            for r in range(min(4, h - top)):
                store(y, ((image * h + top + r) * w + left + j) * D + e, z[r] + load(bias, e))


@kernel_function
def transform_gradient(dy, image, top, left, h, w, D, first, end, line, M, apart):
    """Compute `A dy A^T` of the 4x4 positions from (top, left) on, for channels first .. end.

    The results are stored in `M[k apart + channel - first]`.
    """
    for group in range(first, end, LANES):
        e = min(group, end - LANES)
        for r in range(4):
            start, row = ((image * h + top + r) * w + left) * D + e, top + r < h
            a, b = load_padded(dy, start, row), load_padded(dy, start + D, row and left + 1 < w)
            c = load_padded(dy, start + 2 * D, row and left + 2 < w)
            z = gradient_line((a, b, c, load_padded(dy, start + 3 * D, row and left + 3 < w)))
            for j in range(6):
                store(line, (r * 6 + j) * LANES, z[j])
        for j in range(6):
            z = gradient_line(load_4(line, j * LANES, 6 * LANES))
            for r in range(6):
                store(M, (r * 6 + j) * apart + e - first, z[r])


def forward(task, p):
    """Compute y, from the filters `U` (36, panels, C, 32). A task is a share of the blocks."""
    x, U, y, bias = (
        float_pointer(load_int(p, 2)),
        load_int(p, 3),
        float_pointer(load_int(p, 4)),
        float_pointer(load_int(p, 5)),
    )
    scratch, scratch_size, T, tasks = load_int(p, 6), load_int(p, 7), load_int(p, 8), load_int(p, 1)
    N, H, W, C, D, padding = (
        load_int(p, 9),
        load_int(p, 10),
        load_int(p, 11),
        load_int(p, 12),
        load_int(p, 13),
        load_int(p, 14),
    )
    h, w, panels = H + 2 * padding - 2, W + 2 * padding - 2, (D + PANEL - 1) // PANEL
    down, across = (h + 3) // 4, (w + 3) // 4
    tiles = N * down * across
    blocks = (tiles + T - 1) // T
    apart, output_apart = T * C + LANES, T * panels * PANEL + LANES
    task_scratch = scratch + task * scratch_size * 4
    line, V = float_pointer(task_scratch), task_scratch + TRANSFORM_POINTS * LANES * 4
    M = V + TRANSFORM_POINTS * apart * 4
    for block in range(blocks * task // tasks, blocks * (task + 1) // tasks):
        begin, count = block * T, min(T, tiles - block * T)
        for t in range(count):
            image, i, j = tile_position(begin + t, down, across)
            top, left = 4 * i - padding, 4 * j - padding
            transform_input(x, image, top, left, H, W, C, 0, C, line, float_pointer(V + t * C * 4), apart)
        for k in range(TRANSFORM_POINTS):
            for panel in range(panels):
                filters = float_pointer(U + (k * panels + panel) * C * PANEL * 4)
                # The rows after `count` are computed from arbitrary memory, and never used.
                for t in range(0, count, ROWS):
                    inputs = float_pointer(V + (k * apart + t * C) * 4)
                    outputs = float_pointer(M + (k * output_apart + (t * panels + panel) * PANEL) * 4)
                    matmul_8x32(inputs, C, 1, filters, PANEL, outputs, panels * PANEL, C, 0)
        for t in range(count):
            image, i, j = tile_position(begin + t, down, across)
            tile_M = float_pointer(M + t * panels * PANEL * 4)
            transform_output(tile_M, output_apart, bias, line, y, image, 4 * i, 4 * j, h, w, D)


def backward(task, p):
    """Compute dU for a share of the tiles.

    A task has `rows` input channels, and `columns` output channels padded to `wide`.
    """
    x, dy, dU = float_pointer(load_int(p, 2)), float_pointer(load_int(p, 3)), load_int(p, 4)
    rows, columns, wide, shares = load_int(p, 5), load_int(p, 15), load_int(p, 16), load_int(p, 17)
    scratch, scratch_size, T = load_int(p, 6), load_int(p, 7), load_int(p, 8)
    N, H, W, C, D, padding = (
        load_int(p, 9),
        load_int(p, 10),
        load_int(p, 11),
        load_int(p, 12),
        load_int(p, 13),
        load_int(p, 14),
    )
    h, w = H + 2 * padding - 2, W + 2 * padding - 2
    down, across = (h + 3) // 4, (w + 3) // 4
    tiles = N * down * across
    blocks = (tiles + T - 1) // T
    square, share = task // shares, task % shares
    c, d = square // (D // columns) * rows, square % (D // columns) * columns
    apart, gradient_apart = T * rows + LANES, T * wide + LANES
    task_scratch = scratch + task * scratch_size * 4
    line, V = float_pointer(task_scratch), task_scratch + TRANSFORM_POINTS * LANES * 4
    M, sums = V + TRANSFORM_POINTS * apart * 4, dU + task * TRANSFORM_POINTS * rows * wide * 4
    first = blocks * share // shares
    for block in range(first, blocks * (share + 1) // shares):
        begin, count = block * T, min(T, tiles - block * T)
        for t in range(count):
            image, i, j = tile_position(begin + t, down, across)
            top, left = 4 * i - padding, 4 * j - padding
            transform_input(
                x, image, top, left, H, W, C, c, c + rows, line, float_pointer(V + t * rows * 4), apart
            )
            tile_M, end = float_pointer(M + t * wide * 4), d + columns
            transform_gradient(dy, image, 4 * i, 4 * j, h, w, D, d, end, line, tile_M, gradient_apart)
        for k in range(TRANSFORM_POINTS):
            for panel in range(0, wide, PANEL):
                gradients = float_pointer(M + (k * gradient_apart + panel) * 4)
                for e in range(0, rows, ROWS):
                    inputs = float_pointer(V + (k * apart + e) * 4)
                    outputs = float_pointer(sums + ((k * rows + e) * wide + panel) * 4)
                    matmul_8x32(inputs, 1, rows, gradients, wide, outputs, wide, count, block - first)
