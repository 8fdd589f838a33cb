"""`ops.rotary`: all heads of a position are turned by the same angles; 16 pairs side by side.

A task is a share of the positions of all rows of the batch.
"""

from foveal.ops.kernels.simd import LANES, floats, fma, load, store, word


def forward(task, p):
    """The output; with the other sign of `sin`, from the output's gradient, the input's."""
    x, y, cos, sin = floats(word(p, 2)), floats(word(p, 3)), floats(word(p, 4)), floats(word(p, 5))
    rows, H, K, stride, angles = word(p, 6), word(p, 7), word(p, 8), word(p, 9), word(p, 10)
    tasks, half = word(p, 1), K // 2
    for row in range(rows * task // tasks, rows * (task + 1) // tasks):
        angle = row % angles * half
        for head in range(H):
            source, target = row * stride + head * K, (row * H + head) * K
            for i in range(0, half, LANES):
                a, b = load(x, source + i), load(x, source + half + i)
                c, s = load(cos, angle + i), load(sin, angle + i)
                store(y, target + i, a * c - b * s)
                store(y, target + half + i, fma(b, c, a * s))
