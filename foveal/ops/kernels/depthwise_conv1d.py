"""Kernel of `ops.ssm.depthwise_conv1d`: convolution and SiLU in one pass over time, 16 channels per vector.

A task is a row of the batch and a share of its channels. B, T, E, K and R = K - 1 have the meanings of
`ops.ssm.depthwise_conv1d`; E is a multiple of 16. The taps are stored as (K, E). History and input are one
sequence of R + T steps, stored in two arrays: output t reads steps t .. t + R.
"""

from foveal.ops.kernels.simd import LANES, broadcast, float_pointer, fma, load, load_int, sigmoid, store


def forward(task, p):
    """Compute y."""
    x, history, taps, bias, y = (
        load_int(p, 2),
        load_int(p, 3),
        float_pointer(load_int(p, 4)),
        float_pointer(load_int(p, 5)),
        load_int(p, 6),
    )
    T, E, K, shares = load_int(p, 7), load_int(p, 8), load_int(p, 9), load_int(p, 10)
    row, share, groups, R = task // shares, task % shares, E // LANES, K - 1
    first, end = groups * share // shares * LANES, groups * (share + 1) // shares * LANES
    past, present, out = (
        float_pointer(history + row * R * E * 4),
        float_pointer(x + row * T * E * 4),
        float_pointer(y),
    )
    for t in range(T):
        before = max(R - t, 0)  # taps that fall into the history
        for e in range(first, end, LANES):
            a = load(bias, e)
            for j in range(before):
                a = fma(load(taps, j * E + e), load(past, (t + j) * E + e), a)
            for j in range(before, K):
                a = fma(load(taps, j * E + e), load(present, (t + j - R) * E + e), a)
            store(out, (row * T + t) * E + e, a * sigmoid(a))


def backward(task, p):
    """Compute the gradients. The gradients of the taps and the bias (`dtaps`'s last row) are those of one row
    of the batch.

    The gradient of a step depends on the gradients of the K sums that contain the step. The gradient of sum t
    is therefore stored at dx_t. R steps later, when all K are known, the gradient of the step overwrites it.
    """
    x, history, taps, bias, dy = (
        load_int(p, 2),
        load_int(p, 3),
        float_pointer(load_int(p, 4)),
        float_pointer(load_int(p, 5)),
        load_int(p, 6),
    )
    dx, dhistory, dtaps = load_int(p, 7), load_int(p, 8), load_int(p, 9)
    T, E, K, shares = load_int(p, 10), load_int(p, 11), load_int(p, 12), load_int(p, 13)
    row, share, groups, R = task // shares, task % shares, E // LANES, K - 1
    first, end = groups * share // shares * LANES, groups * (share + 1) // shares * LANES
    past, present, dy_values = (
        float_pointer(history + row * R * E * 4),
        float_pointer(x + row * T * E * 4),
        float_pointer(dy),
    )
    to_past, to_present = float_pointer(dhistory + row * R * E * 4), float_pointer(dx + row * T * E * 4)
    to_taps = float_pointer(dtaps + row * (K + 1) * E * 4)
    for e in range(first, end, LANES):
        for j in range(K + 1):
            store(to_taps, j * E + e, broadcast(0.0))
    for t in range(T + R):
        if t < T:
            before = max(R - t, 0)
            for e in range(first, end, LANES):
                a = load(bias, e)
                for j in range(before):
                    a = fma(load(taps, j * E + e), load(past, (t + j) * E + e), a)
                for j in range(before, K):
                    a = fma(load(taps, j * E + e), load(present, (t + j - R) * E + e), a)
                s = sigmoid(a)
                g = load(dy_values, (row * T + t) * E + e) * s * fma(a, 1.0 - s, broadcast(1.0))
                store(to_present, t * E + e, g)
                for j in range(before):
                    k = j * E + e
                    store(to_taps, k, fma(g, load(past, (t + j) * E + e), load(to_taps, k)))
                for j in range(before, K):
                    k = j * E + e
                    store(to_taps, k, fma(g, load(present, (t + j - R) * E + e), load(to_taps, k)))
                store(to_taps, K * E + e, load(to_taps, K * E + e) + g)
        # Step t of history and input contributed to the sums t - R .. t, as far as they exist.
        for e in range(first, end, LANES):
            a = broadcast(0.0)
            for j in range(max(t - T + 1, 0), min(K, t + 1)):
                a = fma(load(taps, j * E + e), load(to_present, (t - j) * E + e), a)
            if t < R:
                store(to_past, t * E + e, a)
            else:
                store(to_present, (t - R) * E + e, a)
