"""Kernel of `ops.linear` for few vectors: the weights are read once, at memory bandwidth.

A task is a share of the outputs, whose weights are contiguous. Sizes: R vectors, K inputs, M outputs.
"""

from foveal.ops.kernels.simd import (
    LANES,
    broadcast,
    float_pointer,
    fma,
    kernel_function,
    load,
    load_int,
    load_scalar,
    reduce_sum,
    store_scalar,
)


def forward(task, p):
    """Compute `y[r, m] = sum_k x[r, k] W[m, k] + bias[m]`. `biased` says whether there is a bias."""
    x, W, bias, y = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
        float_pointer(load_int(p, 5)),
    )
    R, K, M, biased, tasks = load_int(p, 6), load_int(p, 7), load_int(p, 8), load_int(p, 9), load_int(p, 1)
    output_range(x, W, bias, y, R, K, M, biased, M * task // tasks, M * (task + 1) // tasks)


@kernel_function
def output_range(x, W, bias, y, R, K, M, biased, first, last):
    """Compute the outputs from `first` to `last`, for every row.

    Four rows at a time share each load of the weights. A single row has four partial sums instead, each of
    every fourth vector, because additions to the same sum wait for each other.
    """
    unrolled_part, vector_part = K // (4 * LANES) * 4 * LANES, K // LANES * LANES
    for m in range(first, last):
        row = m * K
        added = load_scalar(bias, m) if biased else 0.0
        for r in range(0, R // 4 * 4, 4):
            row_a, row_b, row_c, row_d = r * K, (r + 1) * K, (r + 2) * K, (r + 3) * K
            a, b, c, d = broadcast(0.0), broadcast(0.0), broadcast(0.0), broadcast(0.0)
            for k in range(0, vector_part, LANES):
                w = load(W, row + k)
                a = fma(w, load(x, row_a + k), a)
                b = fma(w, load(x, row_b + k), b)
                c = fma(w, load(x, row_c + k), c)
                d = fma(w, load(x, row_d + k), d)
            store_scalar(y, r * M + m, dot_remainder(x, row_a, W, row, vector_part, K, reduce_sum(a)) + added)
            store_scalar(
                y, (r + 1) * M + m, dot_remainder(x, row_b, W, row, vector_part, K, reduce_sum(b)) + added
            )
            store_scalar(
                y, (r + 2) * M + m, dot_remainder(x, row_c, W, row, vector_part, K, reduce_sum(c)) + added
            )
            store_scalar(
                y, (r + 3) * M + m, dot_remainder(x, row_d, W, row, vector_part, K, reduce_sum(d)) + added
            )
        for r in range(R // 4 * 4, R):
            own = r * K
            a, b, c, d = broadcast(0.0), broadcast(0.0), broadcast(0.0), broadcast(0.0)
            for k in range(0, unrolled_part, 4 * LANES):
                at, x_at = row + k, own + k
                a = fma(load(W, at), load(x, x_at), a)
                b = fma(load(W, at + LANES), load(x, x_at + LANES), b)
                c = fma(load(W, at + 2 * LANES), load(x, x_at + 2 * LANES), c)
                d = fma(load(W, at + 3 * LANES), load(x, x_at + 3 * LANES), d)
            for k in range(unrolled_part, vector_part, LANES):
                a = fma(load(W, row + k), load(x, own + k), a)
            store_scalar(
                y,
                r * M + m,
                dot_remainder(x, own, W, row, vector_part, K, reduce_sum((a + b) + (c + d))) + added,
            )


@kernel_function
def dot_remainder(x, own, W, row, vector_part, K, s):
    """Return `s` plus the products of the elements after the last whole vector."""
    for k in range(vector_part, K):
        s += load_scalar(W, row + k) * load_scalar(x, own + k)
    return s
