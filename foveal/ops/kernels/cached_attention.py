"""`ops.cached_attention`: one query of each row and head against all keys of its cache.

A task is a row and one share of its heads. Sizes: B, H, K as there; C slots in a cache.
Keys are gone through slot by slot, all heads of the share at once, as they lie in memory.
"""

import math

from foveal.ops.kernels.linear import rest
from foveal.ops.kernels.simd import (
    LANES,
    exp2,
    floats,
    fma,
    get,
    load,
    put,
    spread,
    step,
    store,
    total,
    word,
    words,
)


def forward(task, p):
    """Write the new key and value into the slot that `count` names, then attend to all up to it."""
    q, k, v, y = floats(word(p, 2)), floats(word(p, 3)), floats(word(p, 4)), floats(word(p, 5))
    keys, values, weights = floats(word(p, 6)), floats(word(p, 7)), floats(word(p, 8))
    count, C, H, K, shares = words(word(p, 9)), word(p, 10), word(p, 11), word(p, 12), word(p, 13)
    row, share = task // shares, task % shares
    first, last = H * share // shares, H * (share + 1) // shares
    attend(q, k, v, y, keys, values, weights, row, word(count, row), C, H, K, first, last)


@step
def attend(q, k, v, y, keys, values, weights, row, last, C, H, K, first_head, last_head):
    """One row and the heads from `first_head` to `last_head`; `last` is the new slot."""
    heads, first, own = range(first_head, last_head), row * C * H * K, row * H * K
    scale, room, whole = (
        1 / (math.sqrt(K) * math.log(2)),
        (C + LANES - 1) // LANES * LANES,
        K // LANES * LANES,
    )
    for i in range(first_head * K, last_head * K):
        put(keys, first + last * H * K + i, get(k, own + i))
        put(values, first + last * H * K + i, get(v, own + i))
        put(y, own + i, 0.0)
    for j in range(last + 1):
        for head in heads:
            score, mine, there = spread(0.0), own + head * K, first + (j * H + head) * K
            for i in range(0, whole, LANES):
                score = fma(load(q, mine + i), load(keys, there + i), score)
            product = rest(q, mine, keys, there, whole, K, total(score))
            put(weights, (row * H + head) * room + j, product * scale)
    for head in heads:
        mine = (row * H + head) * room
        highest, sums = get(weights, mine), spread(0.0)
        for j in range(1, last + 1):
            highest = max(highest, get(weights, mine + j))
        for j in range(last + 1, (last + LANES) // LANES * LANES):
            put(weights, mine + j, -math.inf)
        for j in range(0, last + 1, LANES):
            weight = exp2(load(weights, mine + j) - highest)
            store(weights, mine + j, weight)
            sums = sums + weight
        share_of_one = 1 / total(sums)
        for j in range(0, last + 1, LANES):
            store(weights, mine + j, load(weights, mine + j) * share_of_one)
    for j in range(last + 1):
        for head in heads:
            weight = get(weights, (row * H + head) * room + j)
            mine, there = own + head * K, first + (j * H + head) * K
            for i in range(0, whole, LANES):
                store(y, mine + i, fma(spread(weight), load(values, there + i), load(y, mine + i)))
            for i in range(whole, K):
                put(y, mine + i, get(y, mine + i) + weight * get(values, there + i))
