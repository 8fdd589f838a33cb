"""Kernel of `ops.ssm.mamba_delta`, elementwise, 16 channels per vector.

A task is a row of the batch and a share of its channels. B, T and E have the meanings of
`ops.ssm.mamba_delta`; E is a multiple of 16.
"""

from foveal.ops.kernels.simd import (
    LANES,
    broadcast,
    exp,
    float_pointer,
    fma,
    load,
    load_int,
    maximum,
    sigmoid,
    store,
)

# 2 artanh(s) = s (C0 + C1 s^2 + ...) up to s = 1/3: interpolated at Chebyshev points, accurate to 4e-9.
C0, C1, C2, C3, C4 = 2.0000000077, 0.6666632164, 0.4002459523, 0.2796515775, 0.2815777835


def forward(task, p):
    """Compute `delta = max(a, 0) + ln(1 + w)` with `a = x + bias` and `w = e^-|a|`.

    The logarithm is `2 artanh(w / (w + 2))`, which for small w equals w to the last digits.
    """
    x, bias, delta = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
    )
    T, E, shares = load_int(p, 5), load_int(p, 6), load_int(p, 7)
    row, share, groups = task // shares, task % shares, E // LANES
    for at in range(row * T * E, (row + 1) * T * E, E):
        for e in range(groups * share // shares * LANES, groups * (share + 1) // shares * LANES, LANES):
            a = load(x, at + e) + load(bias, e)
            w = exp(0.0 - maximum(0.0 - a, a))
            s = w / (w + 2.0)
            q = s * s
            series = fma(fma(q, broadcast(C4), broadcast(C3)), q, broadcast(C2))
            series = fma(fma(series, q, broadcast(C1)), q, broadcast(C0))
            store(delta, at + e, fma(s, series, maximum(broadcast(0.0), a)))


def backward(task, p):
    """Compute the gradients. The gradient of the bias is that of one row of the batch."""
    x, bias, ddelta = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
    )
    dx, dbias = float_pointer(load_int(p, 5)), float_pointer(load_int(p, 6))
    T, E, shares = load_int(p, 7), load_int(p, 8), load_int(p, 9)
    row, share, groups = task // shares, task % shares, E // LANES
    first, end = groups * share // shares * LANES, groups * (share + 1) // shares * LANES
    for e in range(first, end, LANES):
        store(dbias, row * E + e, broadcast(0.0))
    for at in range(row * T * E, (row + 1) * T * E, E):
        for e in range(first, end, LANES):
            g = load(ddelta, at + e) * sigmoid(load(x, at + e) + load(bias, e))
            store(dx, at + e, g)
            store(dbias, row * E + e, load(dbias, row * E + e) + g)
