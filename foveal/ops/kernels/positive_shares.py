"""Kernel of `ops.minirocket.positive_shares`.

A task is a row of the batch. B, K, S and Q have the meanings of `ops.minirocket.positive_shares`.
"""

from foveal.ops.kernels.simd import float_pointer, int_pointer, load_int, load_scalar, store_scalar


def forward(task, p):
    """Count the steps from `begins` to `ends` at which a response is above each threshold."""
    responses, begins, ends = (
        float_pointer(load_int(p, 2)),
        int_pointer(load_int(p, 3)),
        int_pointer(load_int(p, 4)),
    )
    thresholds, shares = float_pointer(load_int(p, 5)), float_pointer(load_int(p, 6))
    K, S, Q = load_int(p, 7), load_int(p, 8), load_int(p, 9)
    for kernel in range(K):
        row = task * K + kernel
        begin, end = load_int(begins, row), load_int(ends, row)
        for q in range(Q):
            threshold, count = load_scalar(thresholds, kernel * Q + q), 0
            for step in range(row * S + begin, row * S + end):
                if load_scalar(responses, step) > threshold:
                    count += 1
            store_scalar(shares, row * Q + q, count / max(1, end - begin))
