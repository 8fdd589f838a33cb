"""`ops.linear` for a few vectors: the weights are read once, as fast as memory gives them.

A task is a share of the outputs, whose weights lie one behind the other. Sizes: R vectors of K numbers to M.
"""

from foveal.ops.kernels.simd import LANES, floats, fma, get, load, put, spread, step, total, word


def forward(task, p):
    """`y[r, m] = sum_k x[r, k] W[m, k] + bias[m]`; `biased` says whether there is a bias."""
    x, W, bias, y = floats(word(p, 2)), floats(word(p, 3)), floats(word(p, 4)), floats(word(p, 5))
    R, K, M, biased, tasks = word(p, 6), word(p, 7), word(p, 8), word(p, 9), word(p, 1)
    outputs(x, W, bias, y, R, K, M, biased, M * task // tasks, M * (task + 1) // tasks)


@step
def outputs(x, W, bias, y, R, K, M, biased, first, last):
    """Those from `first` to `last`, for every row.

    Four vectors at a time share what is read of the weights. A single one has four sums instead, of every
    fourth 16 numbers, since each sum has to wait for its last addition.
    """
    quads, whole = K // (4 * LANES) * 4 * LANES, K // LANES * LANES
    for m in range(first, last):
        row = m * K
        added = get(bias, m) if biased else 0.0
        for r in range(0, R // 4 * 4, 4):
            one, two, three, four = r * K, (r + 1) * K, (r + 2) * K, (r + 3) * K
            a, b, c, d = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
            for k in range(0, whole, LANES):
                w = load(W, row + k)
                a = fma(w, load(x, one + k), a)
                b = fma(w, load(x, two + k), b)
                c = fma(w, load(x, three + k), c)
                d = fma(w, load(x, four + k), d)
            put(y, r * M + m, rest(x, one, W, row, whole, K, total(a)) + added)
            put(y, (r + 1) * M + m, rest(x, two, W, row, whole, K, total(b)) + added)
            put(y, (r + 2) * M + m, rest(x, three, W, row, whole, K, total(c)) + added)
            put(y, (r + 3) * M + m, rest(x, four, W, row, whole, K, total(d)) + added)
        for r in range(R // 4 * 4, R):
            own = r * K
            a, b, c, d = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
            for k in range(0, quads, 4 * LANES):
                at, here = row + k, own + k
                a = fma(load(W, at), load(x, here), a)
                b = fma(load(W, at + LANES), load(x, here + LANES), b)
                c = fma(load(W, at + 2 * LANES), load(x, here + 2 * LANES), c)
                d = fma(load(W, at + 3 * LANES), load(x, here + 3 * LANES), d)
            for k in range(quads, whole, LANES):
                a = fma(load(W, row + k), load(x, own + k), a)
            put(y, r * M + m, rest(x, own, W, row, whole, K, total((a + b) + (c + d))) + added)


@step
def rest(x, own, W, row, whole, K, s):
    """`s` and the products of the numbers behind the last whole vector."""
    for k in range(whole, K):
        s += get(W, row + k) * get(x, own + k)
    return s
