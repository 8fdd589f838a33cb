"""`ops.cached_attention`: one query of each row and head against all keys of its cache.

A task is a row and one share of its heads. Sizes: B, H, K as there, K a multiple of 16; C slots in a cache.
Keys are gone through slot by slot, all heads of the share at once, as they lie in memory.
"""

import math

from foveal.ops.kernels.simd import (
    LANES,
    exp2,
    floats,
    fma,
    get,
    load,
    put,
    spread,
    store,
    total,
    word,
    words,
)


def forward(task, p):
    """Write the new key and value into the slot that `count` names, then attend to all up to it."""
    q, k, v, y = floats(word(p, 2)), floats(word(p, 3)), floats(word(p, 4)), floats(word(p, 5))
    keys, values, weights, count = (
        floats(word(p, 6)),
        floats(word(p, 7)),
        floats(word(p, 8)),
        words(word(p, 9)),
    )
    C, H, K, shares = word(p, 10), word(p, 11), word(p, 12), word(p, 13)
    row, share = task // shares, task % shares
    heads, first, last = (
        range(H * share // shares, H * (share + 1) // shares),
        row * C * H * K,
        word(count, row),
    )
    scale, room = 1 / (math.sqrt(K) * math.log(2)), (C + LANES - 1) // LANES * LANES
    for i in range(heads.start * K, heads.stop * K, LANES):
        store(keys, first + last * H * K + i, load(k, row * H * K + i))
        store(values, first + last * H * K + i, load(v, row * H * K + i))
        store(y, row * H * K + i, spread(0.0))
    for j in range(last + 1):
        for head in heads:
            score = spread(0.0)
            for i in range(head * K, (head + 1) * K, LANES):
                score = fma(load(q, row * H * K + i), load(keys, first + j * H * K + i), score)
            put(weights, (row * H + head) * room + j, total(score) * scale)
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
            weight = spread(get(weights, (row * H + head) * room + j))
            for i in range(head * K, (head + 1) * K, LANES):
                mean = load(y, row * H * K + i)
                store(y, row * H * K + i, fma(weight, load(values, first + j * H * K + i), mean))
