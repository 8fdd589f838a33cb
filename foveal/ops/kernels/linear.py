"""`ops.linear` for a few vectors: the weights are read once, as fast as memory gives them.

A task is a share of the outputs, four at a time. Sizes: R vectors of K numbers to M.
"""

from foveal.ops.kernels.simd import LANES, floats, fma, get, load, put, spread, total, word


def forward(task, p):
    """`y[r, m] = sum_k x[r, k] W[m, k] + bias[m]`; `biased` says whether there is a bias."""
    x, W, bias, y = floats(word(p, 2)), floats(word(p, 3)), floats(word(p, 4)), floats(word(p, 5))
    R, K, M, biased, tasks = word(p, 6), word(p, 7), word(p, 8), word(p, 9), word(p, 1)
    quads, whole = (M + 3) // 4, K // LANES * LANES
    for quad in range(quads * task // tasks, quads * (task + 1) // tasks):
        # The last four may begin before others end: what is computed twice is the same.
        m = max(0, min(4 * quad, M - 4))
        second, third, fourth = min(m + 1, M - 1), min(m + 2, M - 1), min(m + 3, M - 1)
        for r in range(R):
            a, b, c, d = spread(0.0), spread(0.0), spread(0.0), spread(0.0)
            for k in range(0, whole, LANES):
                v = load(x, r * K + k)
                a = fma(load(W, m * K + k), v, a)
                b = fma(load(W, second * K + k), v, b)
                c = fma(load(W, third * K + k), v, c)
                d = fma(load(W, fourth * K + k), v, d)
            e, f, g, h = total(a), total(b), total(c), total(d)
            for k in range(whole, K):
                one = get(x, r * K + k)
                e += get(W, m * K + k) * one
                f += get(W, second * K + k) * one
                g += get(W, third * K + k) * one
                h += get(W, fourth * K + k) * one
            if biased:
                e, f = e + get(bias, m), f + get(bias, second)
                g, h = g + get(bias, third), h + get(bias, fourth)
            put(y, r * M + m, e)
            put(y, r * M + second, f)
            put(y, r * M + third, g)
            put(y, r * M + fourth, h)
