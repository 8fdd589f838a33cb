"""`ops.linear` for a few vectors: the weights are read once, as fast as memory gives them.

A task is a share of the outputs, whose weights lie one behind the other. Sizes: R vectors of K numbers to M.
"""

from foveal.ops.kernels.simd import LANES, floats, fma, get, load, put, spread, total, word


def forward(task, p):
    """`y[r, m] = sum_k x[r, k] W[m, k] + bias[m]`; `biased` says whether there is a bias."""
    x, W, bias, y = floats(word(p, 2)), floats(word(p, 3)), floats(word(p, 4)), floats(word(p, 5))
    R, K, M, biased, tasks = word(p, 6), word(p, 7), word(p, 8), word(p, 9), word(p, 1)
    quads, whole = K // (4 * LANES) * 4 * LANES, K // LANES * LANES
    for m in range(M * task // tasks, M * (task + 1) // tasks):
        for r in range(R):
            a, b, c, d = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
            for k in range(0, quads, 4 * LANES):
                at, own = m * K + k, r * K + k
                a = fma(load(W, at), load(x, own), a)
                b = fma(load(W, at + LANES), load(x, own + LANES), b)
                c = fma(load(W, at + 2 * LANES), load(x, own + 2 * LANES), c)
                d = fma(load(W, at + 3 * LANES), load(x, own + 3 * LANES), d)
            for k in range(quads, whole, LANES):
                a = fma(load(W, m * K + k), load(x, r * K + k), a)
            s = total((a + b) + (c + d))
            for k in range(whole, K):
                s += get(W, m * K + k) * get(x, r * K + k)
            if biased:
                s += get(bias, m)
            put(y, r * M + m, s)
