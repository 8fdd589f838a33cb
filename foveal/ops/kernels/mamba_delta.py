"""`ops.time_steps`: by elements, 16 channels side by side.

A task is one row of the batch and one share of its channels. Sizes: B, T, E as there, E a multiple of 16.
"""

from foveal.ops.kernels.simd import LANES, exp, floats, fma, load, maximum, sigmoid, spread, store, word

# 2 artanh(s) = s (C0 + C1 s^2 + ...) up to s = 1/3: an interpolation at Chebyshev's points, right to 4e-9.
C0, C1, C2, C3, C4 = 2.0000000077, 0.6666632164, 0.4002459523, 0.2796515775, 0.2815777835


def forward(task, p):
    """`delta = max(a, 0) + ln(1 + w)` of `a = x + bias`, with `w = e^-|a|`.

    The logarithm is `2 artanh(w / (w + 2))`: for small w it is w to the last digits.
    """
    x, bias, delta = floats(word(p, 2)), floats(word(p, 3)), floats(word(p, 4))
    T, E, shares = word(p, 5), word(p, 6), word(p, 7)
    row, share, groups = task // shares, task % shares, E // LANES
    for at in range(row * T * E, (row + 1) * T * E, E):
        for e in range(groups * share // shares * LANES, groups * (share + 1) // shares * LANES, LANES):
            a = load(x, at + e) + load(bias, e)
            w = exp(0.0 - maximum(0.0 - a, a))
            s = w / (w + 2.0)
            q = s * s
            series = fma(fma(q, spread(C4), spread(C3)), q, spread(C2))
            series = fma(fma(series, q, spread(C1)), q, spread(C0))
            store(delta, at + e, fma(s, series, maximum(spread(0.0), a)))


def backward(task, p):
    """The gradients, of the bias that of this row."""
    x, bias, ddelta = floats(word(p, 2)), floats(word(p, 3)), floats(word(p, 4))
    dx, dbias = floats(word(p, 5)), floats(word(p, 6))
    T, E, shares = word(p, 7), word(p, 8), word(p, 9)
    row, share, groups = task // shares, task % shares, E // LANES
    first, end = groups * share // shares * LANES, groups * (share + 1) // shares * LANES
    for e in range(first, end, LANES):
        store(dbias, row * E + e, spread(0.0))
    for at in range(row * T * E, (row + 1) * T * E, E):
        for e in range(first, end, LANES):
            g = load(ddelta, at + e) * sigmoid(load(x, at + e) + load(bias, e))
            store(dx, at + e, g)
            store(dbias, row * E + e, load(dbias, row * E + e) + g)
