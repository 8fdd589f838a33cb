"""`ops.gate`: by elements, 16 channels side by side.

A task is one row of the batch and one share of its channels. Sizes: B, T, E as there, E a multiple of 16.
"""

from foveal.ops.kernels.simd import LANES, floats, fma, load, sigmoid, spread, store, word


def forward(task, p):
    """The output."""
    y, u, skip, z = floats(word(p, 2)), floats(word(p, 3)), floats(word(p, 4)), floats(word(p, 5))
    output = floats(word(p, 6))
    T, E, shares = word(p, 7), word(p, 8), word(p, 9)
    row, share, groups = task // shares, task % shares, E // LANES
    for at in range(row * T * E, (row + 1) * T * E, E):
        for e in range(groups * share // shares * LANES, groups * (share + 1) // shares * LANES, LANES):
            a = load(z, at + e)
            passed = fma(load(skip, e), load(u, at + e), load(y, at + e))
            store(output, at + e, passed * a * sigmoid(a))


def backward(task, p):
    """The gradients, of `skip` that of this row."""
    y, u, skip, z = floats(word(p, 2)), floats(word(p, 3)), floats(word(p, 4)), floats(word(p, 5))
    given, dy, du = floats(word(p, 6)), floats(word(p, 7)), floats(word(p, 8))
    dskip, dz = floats(word(p, 9)), floats(word(p, 10))
    T, E, shares = word(p, 11), word(p, 12), word(p, 13)
    row, share, groups = task // shares, task % shares, E // LANES
    first, end = groups * share // shares * LANES, groups * (share + 1) // shares * LANES
    for e in range(first, end, LANES):
        store(dskip, row * E + e, spread(0.0))
    for at in range(row * T * E, (row + 1) * T * E, E):
        for e in range(first, end, LANES):
            a, g, x, k = load(z, at + e), load(given, at + e), load(u, at + e), row * E + e
            s, through = sigmoid(a), load(skip, e)
            passed, to_passed = fma(through, x, load(y, at + e)), g * a * s
            store(dy, at + e, to_passed)
            store(du, at + e, to_passed * through)
            store(dz, at + e, g * passed * s * fma(a, 1.0 - s, spread(1.0)))
            store(dskip, k, fma(to_passed, x, load(dskip, k)))
