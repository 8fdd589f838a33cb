"""`ops.linear` for a few vectors: the weights are read once, as fast as memory gives them.

A task is a share of the outputs, whose weights lie one behind the other. Sizes: R vectors of K numbers to M.
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
    """`y[r, m] = sum_k x[r, k] W[m, k] + bias[m]`; `biased` says whether there is a bias."""
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
    """Those from `first` to `last`, for every row.

    Four vectors at a time share what is read of the weights. A single one has four sums instead, of every
    fourth 16 numbers, since each sum has to wait for its last addition.
    """
    quads, whole = K // (4 * LANES) * 4 * LANES, K // LANES * LANES
    for m in range(first, last):
        row = m * K
        added = load_scalar(bias, m) if biased else 0.0
        for r in range(0, R // 4 * 4, 4):
            one, two, three, four = r * K, (r + 1) * K, (r + 2) * K, (r + 3) * K
            a, b, c, d = broadcast(0.0), broadcast(0.0), broadcast(0.0), broadcast(0.0)
            for k in range(0, whole, LANES):
                w = load(W, row + k)
                a = fma(w, load(x, one + k), a)
                b = fma(w, load(x, two + k), b)
                c = fma(w, load(x, three + k), c)
                d = fma(w, load(x, four + k), d)
            store_scalar(y, r * M + m, dot_remainder(x, one, W, row, whole, K, reduce_sum(a)) + added)
            store_scalar(y, (r + 1) * M + m, dot_remainder(x, two, W, row, whole, K, reduce_sum(b)) + added)
            store_scalar(y, (r + 2) * M + m, dot_remainder(x, three, W, row, whole, K, reduce_sum(c)) + added)
            store_scalar(y, (r + 3) * M + m, dot_remainder(x, four, W, row, whole, K, reduce_sum(d)) + added)
        for r in range(R // 4 * 4, R):
            own = r * K
            a, b, c, d = broadcast(0.0), broadcast(0.0), broadcast(0.0), broadcast(0.0)
            for k in range(0, quads, 4 * LANES):
                at, here = row + k, own + k
                a = fma(load(W, at), load(x, here), a)
                b = fma(load(W, at + LANES), load(x, here + LANES), b)
                c = fma(load(W, at + 2 * LANES), load(x, here + 2 * LANES), c)
                d = fma(load(W, at + 3 * LANES), load(x, here + 3 * LANES), d)
            for k in range(quads, whole, LANES):
                a = fma(load(W, row + k), load(x, own + k), a)
            store_scalar(
                y, r * M + m, dot_remainder(x, own, W, row, whole, K, reduce_sum((a + b) + (c + d))) + added
            )


@kernel_function
def dot_remainder(x, own, W, row, whole, K, s):
    """`s` and the products of the numbers behind the last whole vector."""
    for k in range(whole, K):
        s += load_scalar(W, row + k) * load_scalar(x, own + k)
    return s
