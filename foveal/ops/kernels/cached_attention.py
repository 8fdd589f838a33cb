"""Kernel of `ops.attention.cached_attention`: one query per row and head attends to all keys of its cache.

A task is a row and a share of its heads. B, H and K have the meanings of `ops.attention.cached_attention`; a
cache has C slots. Keys are read slot by slot in the order of memory, for all heads of the share at once.
"""

import math

from foveal.ops.kernels.linear import dot_remainder
from foveal.ops.kernels.simd import (
    LANES,
    broadcast,
    exp2,
    float_pointer,
    fma,
    int_pointer,
    kernel_function,
    load,
    load_int,
    load_scalar,
    reduce_sum,
    store,
    store_scalar,
)


def forward(task, p):
    """Write the new key and value into slot `count`, then attend to all slots up to this one."""
    q, k, v, y = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
        float_pointer(load_int(p, 5)),
    )
    keys, values, weights = (
        float_pointer(load_int(p, 6)),
        float_pointer(load_int(p, 7)),
        float_pointer(load_int(p, 8)),
    )
    count, C, H, K, shares = (
        int_pointer(load_int(p, 9)),
        load_int(p, 10),
        load_int(p, 11),
        load_int(p, 12),
        load_int(p, 13),
    )
    row, share = task // shares, task % shares
    first, last = H * share // shares, H * (share + 1) // shares
    attend_row(q, k, v, y, keys, values, weights, row, load_int(count, row), C, H, K, first, last)


@kernel_function
def attend_row(q, k, v, y, keys, values, weights, row, last, C, H, K, first_head, last_head):
    """Compute the attention of one row for the heads from `first_head` to `last_head`. `last` is the new
    slot."""
    heads, first, own = range(first_head, last_head), row * C * H * K, row * H * K
    scale, padded_size, vector_part = (
        1 / (math.sqrt(K) * math.log(2)),
        (C + LANES - 1) // LANES * LANES,
        K // LANES * LANES,
    )
    for i in range(first_head * K, last_head * K):
        store_scalar(keys, first + last * H * K + i, load_scalar(k, own + i))
        store_scalar(values, first + last * H * K + i, load_scalar(v, own + i))
        store_scalar(y, own + i, 0.0)
    for j in range(last + 1):
        for head in heads:
            score, query_start, key_start = broadcast(0.0), own + head * K, first + (j * H + head) * K
            for i in range(0, vector_part, LANES):
                score = fma(load(q, query_start + i), load(keys, key_start + i), score)
            product = dot_remainder(q, query_start, keys, key_start, vector_part, K, reduce_sum(score))
            store_scalar(weights, (row * H + head) * padded_size + j, product * scale)
    for head in heads:
        query_start = (row * H + head) * padded_size
        highest, sums = load_scalar(weights, query_start), broadcast(0.0)
        for j in range(1, last + 1):
            highest = max(highest, load_scalar(weights, query_start + j))
        for j in range(last + 1, (last + LANES) // LANES * LANES):
            store_scalar(weights, query_start + j, -math.inf)
        for j in range(0, last + 1, LANES):
            weight = exp2(load(weights, query_start + j) - highest)
            store(weights, query_start + j, weight)
            sums = sums + weight
        inverse = 1 / reduce_sum(sums)
        for j in range(0, last + 1, LANES):
            store(weights, query_start + j, load(weights, query_start + j) * inverse)
    for j in range(last + 1):
        for head in heads:
            weight = load_scalar(weights, (row * H + head) * padded_size + j)
            query_start, key_start = own + head * K, first + (j * H + head) * K
            for i in range(0, vector_part, LANES):
                store(
                    y,
                    query_start + i,
                    fma(broadcast(weight), load(values, key_start + i), load(y, query_start + i)),
                )
            for i in range(vector_part, K):
                store_scalar(
                    y,
                    query_start + i,
                    load_scalar(y, query_start + i) + weight * load_scalar(values, key_start + i),
                )
