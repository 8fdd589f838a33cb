"""Kernel of `ops.attention.rotary`: all heads of a position share the same angles; 16 pairs per vector.

A task is a share of the positions of all rows of the batch.
"""

from foveal.ops.kernels.simd import LANES, float_pointer, fma, load, load_int, store


def forward(task, p):
    """Compute the output. With `sin` negated, compute the input's gradient from the output's."""
    x, y, cos, sin = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
        float_pointer(load_int(p, 5)),
    )
    rows, H, K, stride, angles = (
        load_int(p, 6),
        load_int(p, 7),
        load_int(p, 8),
        load_int(p, 9),
        load_int(p, 10),
    )
    tasks, half = load_int(p, 1), K // 2
    for row in range(rows * task // tasks, rows * (task + 1) // tasks):
        angle = row % angles * half
        for head in range(H):
            source, target = row * stride + head * K, (row * H + head) * K
            for i in range(0, half, LANES):
                a, b = load(x, source + i), load(x, source + half + i)
                c, s = load(cos, angle + i), load(sin, angle + i)
                store(y, target + i, a * c - b * s)
                store(y, target + half + i, fma(b, c, a * s))
