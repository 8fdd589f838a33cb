"""Kernel of `ops.attention.additive`: one query per row attends to all keys of its memory, with the gradient.

A task is a row. S, D and M have the meanings of `ops.attention.additive`; D and M are multiples of 16. The
weights of a row have S elements, padded to whole vectors. Vectors that `present` excludes are never read.

    u_i = tanh(q + k_i)    e_i = v . u_i    a = softmax(e)    c = sum_i a_i h_i
"""

import math

from foveal.ops.kernels.simd import (
    LANES,
    broadcast,
    exp,
    float_pointer,
    fma,
    load,
    load_int,
    load_scalar,
    reduce_sum,
    store,
    store_scalar,
    tanh,
)


def forward(task, p):
    """Compute the context `c`, and the weights."""
    q, keys, v, values = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
        float_pointer(load_int(p, 5)),
    )
    present, weights, c = (
        float_pointer(load_int(p, 6)),
        float_pointer(load_int(p, 7)),
        float_pointer(load_int(p, 8)),
    )
    S, D, M = load_int(p, 9), load_int(p, 10), load_int(p, 11)
    padded_size, highest, sums = (S + LANES - 1) // LANES * LANES, -math.inf, broadcast(0.0)
    first, weights_start = task * S, task * padded_size
    for i in range(S):
        score = -math.inf
        if load_scalar(present, first + i) > 0:
            products = broadcast(0.0)
            for j in range(0, D, LANES):
                u = tanh(load(q, task * D + j) + load(keys, (first + i) * D + j))
                products = fma(load(v, task * D + j), u, products)
            score = reduce_sum(products)
            highest = max(highest, score)
        store_scalar(weights, weights_start + i, score)
    for i in range(S, padded_size):
        store_scalar(weights, weights_start + i, -math.inf)
    if highest == -math.inf:
        highest = 0.0  # no vector is present: all weights are exp(-inf) = 0
    for i in range(0, padded_size, LANES):
        weight = exp(load(weights, weights_start + i) - highest)
        store(weights, weights_start + i, weight)
        sums = sums + weight
    total = reduce_sum(sums)
    inverse = 0.0 if total == 0 else 1 / total
    for j in range(0, M, LANES):
        store(c, task * M + j, broadcast(0.0))
    for i in range(S):
        if load_scalar(present, first + i) > 0:
            a = load_scalar(weights, weights_start + i) * inverse
            store_scalar(weights, weights_start + i, a)
            weight = broadcast(a)
            for j in range(0, M, LANES):
                mean = load(c, task * M + j)
                store(c, task * M + j, fma(weight, load(values, (first + i) * M + j), mean))


def backward(task, p):
    """Compute the gradient of q, and add the gradients of keys, v and values to their buffers.

    With `da_i = dc . h_i` the gradient of a score is `de_i = a_i (da_i - sum_j a_j da_j)`. `de` is scratch
    memory.
    """
    q, keys, v, values = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
        float_pointer(load_int(p, 5)),
    )
    present, weights, dc, de = (
        float_pointer(load_int(p, 6)),
        float_pointer(load_int(p, 7)),
        float_pointer(load_int(p, 8)),
        float_pointer(load_int(p, 9)),
    )
    dq, dkeys, dv = (
        float_pointer(load_int(p, 10)),
        float_pointer(load_int(p, 11)),
        float_pointer(load_int(p, 12)),
    )
    dvalues = float_pointer(load_int(p, 13))
    S, D, M = load_int(p, 14), load_int(p, 15), load_int(p, 16)
    first, weights_start, mean = task * S, task * ((S + LANES - 1) // LANES * LANES), 0.0
    for i in range(S):
        if load_scalar(present, first + i) > 0:
            products = broadcast(0.0)
            for j in range(0, M, LANES):
                products = fma(load(dc, task * M + j), load(values, (first + i) * M + j), products)
            da = reduce_sum(products)
            store_scalar(de, weights_start + i, da)
            mean = mean + load_scalar(weights, weights_start + i) * da
    for j in range(0, D, LANES):
        store(dq, task * D + j, broadcast(0.0))
    for i in range(S):
        if load_scalar(present, first + i) > 0:
            a = load_scalar(weights, weights_start + i)
            g = broadcast(a * (load_scalar(de, weights_start + i) - mean))
            for j in range(0, M, LANES):
                at = (first + i) * M + j
                store(dvalues, at, fma(broadcast(a), load(dc, task * M + j), load(dvalues, at)))
            for j in range(0, D, LANES):
                at, own = (first + i) * D + j, task * D + j
                u = tanh(load(q, own) + load(keys, at))
                d = g * load(v, own) * (1.0 - u * u)
                store(dq, own, load(dq, own) + d)
                store(dkeys, at, load(dkeys, at) + d)
                store(dv, own, fma(g, u, load(dv, own)))
