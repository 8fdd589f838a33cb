"""Kernel of `ops.ssm.mamba_gate`, elementwise, 16 channels per vector.

A task is a row of the batch and a share of its channels. B, T and E have the meanings of
`ops.ssm.mamba_gate`; E is a multiple of 16.
"""

from foveal.ops.kernels.simd import LANES, broadcast, float_pointer, fma, load, load_int, sigmoid, store


def forward(task, p):
    """Compute the output."""
    y, u, skip, z = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
        float_pointer(load_int(p, 5)),
    )
    output = float_pointer(load_int(p, 6))
    T, E, shares = load_int(p, 7), load_int(p, 8), load_int(p, 9)
    row, share, groups = task // shares, task % shares, E // LANES
    for at in range(row * T * E, (row + 1) * T * E, E):
        for e in range(groups * share // shares * LANES, groups * (share + 1) // shares * LANES, LANES):
            a = load(z, at + e)
            passed = fma(load(skip, e), load(u, at + e), load(y, at + e))
            store(output, at + e, passed * a * sigmoid(a))


def backward(task, p):
    """Compute the gradients. The gradient of `skip` is that of one row of the batch."""
    y, u, skip, z = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
        float_pointer(load_int(p, 5)),
    )
    doutput, dy, du = (
        float_pointer(load_int(p, 6)),
        float_pointer(load_int(p, 7)),
        float_pointer(load_int(p, 8)),
    )
    dskip, dz = float_pointer(load_int(p, 9)), float_pointer(load_int(p, 10))
    T, E, shares = load_int(p, 11), load_int(p, 12), load_int(p, 13)
    row, share, groups = task // shares, task % shares, E // LANES
    first, end = groups * share // shares * LANES, groups * (share + 1) // shares * LANES
    for e in range(first, end, LANES):
        store(dskip, row * E + e, broadcast(0.0))
    for at in range(row * T * E, (row + 1) * T * E, E):
        for e in range(first, end, LANES):
            a, g, x, k = load(z, at + e), load(doutput, at + e), load(u, at + e), row * E + e
            s, skip_e = sigmoid(a), load(skip, e)
            passed, d_passed = fma(skip_e, x, load(y, at + e)), g * a * s
            store(dy, at + e, d_passed)
            store(du, at + e, d_passed * skip_e)
            store(dz, at + e, g * passed * s * fma(a, 1.0 - s, broadcast(1.0)))
            store(dskip, k, fma(d_passed, x, load(dskip, k)))
