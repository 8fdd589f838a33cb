"""`ops.short_attention`: 32 queries of a head at a time, against all of its keys at once.

A task is a share of the B H heads, one after the other in a piece of memory of its own. Sizes: B, H, T, S, K
as there, K a multiple of 16; W is S filled up to whole vectors, and the bias of a row hides what lies behind
S, too. Queries are scaled by `log2(e) / sqrt(K)`, so that weights are powers of 2. Products are of 8 queries:
behind the last there is something, and nobody reads what comes of it.
"""

import math

from foveal.ops.kernels.simd import (
    LANES,
    ahead,
    exp2,
    floats,
    fma,
    get,
    largest,
    load,
    maximum,
    narrow_products,
    products,
    put,
    spread,
    step,
    store,
    total,
    transpose_8,
    word,
)

QUERIES, ROWS, PANEL = 32, 8, 32


def forward(task, p):
    """The means, (B, T, H, K), and what the weights were made with, (B, H, T, 2)."""
    y, kept, tasks, heads = floats(word(p, 16)), floats(word(p, 17)), word(p, 1), word(p, 25)
    H, T, S, K, causal = word(p, 20), word(p, 21), word(p, 22), word(p, 23), word(p, 24)
    W, scale = up_to(S, LANES), 1 / (math.sqrt(K) * math.log(2))
    across = ahead(floats(word(p, 18)), task * word(p, 19))
    values = ahead(across, K * W)
    queries = ahead(values, S * K)
    weights, means = ahead(queries, QUERIES * K), ahead(queries, QUERIES * (K + W))
    for head in range(heads * task // tasks, heads * (task + 1) // tasks):
        row, h = head // H, head % H
        transpose(part(p, 6, row, h), word(p, 9), S, K, across, W)
        copy(part(p, 10, row, h), word(p, 13), S, K, 1.0, values, K)
        bias = ahead(floats(word(p, 14)), row * word(p, 15))
        for first in range(0, T, QUERIES):
            count = min(QUERIES, T - first)
            reach, rows = S - T + first + count if causal else S, up_to(count, ROWS)
            copy(ahead(part(p, 2, row, h), first * word(p, 5)), word(p, 5), count, K, scale, queries, K)
            multiply(queries, K, 1, across, W, weights, W, K, rows, up_to(reach, LANES), 0)
            for i in range(count):
                seen = S - T + first + i + 1 if causal else S
                hide(ahead(weights, i * W), seen, reach)
                softmax(ahead(weights, i * W), bias, reach, ahead(kept, 2 * (head * T + first + i)))
            multiply(weights, W, 1, values, K, means, K, reach, rows, K, 0)
            copy(means, K, count, K, 1.0, ahead(y, ((row * T + first) * H + h) * K), H * K)


def backward(task, p):
    """The gradients of q (B, T, H, K), k and v (B, S, H, K). The weights are made again.

    `D = sum_i dy_i y_i`, the gradient of a weight is `dy . v`, and that of a score `weight (dy . v - D)`.
    """
    y, kept, tasks, heads = floats(word(p, 20)), floats(word(p, 21)), word(p, 1), word(p, 32)
    dq, dk, dv = floats(word(p, 22)), floats(word(p, 23)), floats(word(p, 24))
    H, T, S, K, causal = word(p, 27), word(p, 28), word(p, 29), word(p, 30), word(p, 31)
    W, scale = up_to(S, LANES), 1 / (math.sqrt(K) * math.log(2))
    across = ahead(floats(word(p, 25)), task * word(p, 26))
    values, keys = ahead(across, K * W), ahead(across, 2 * K * W)
    key_sums = ahead(keys, S * K)
    value_sums, queries = ahead(key_sums, W * K), ahead(key_sums, 2 * W * K)
    given, moved = ahead(queries, QUERIES * K), ahead(queries, 2 * QUERIES * K)
    weights, scores = ahead(queries, 3 * QUERIES * K), ahead(queries, QUERIES * (3 * K + W))
    for head in range(heads * task // tasks, heads * (task + 1) // tasks):
        row, h = head // H, head % H
        transpose(part(p, 6, row, h), word(p, 9), S, K, across, W)
        transpose(part(p, 10, row, h), word(p, 13), S, K, values, W)
        copy(part(p, 6, row, h), word(p, 9), S, K, 1.0, keys, K)
        clear(key_sums, 2 * W * K)
        bias = ahead(floats(word(p, 14)), row * word(p, 15))
        for first in range(0, T, QUERIES):
            count = min(QUERIES, T - first)
            reach, rows = S - T + first + count if causal else S, up_to(count, ROWS)
            filled = up_to(reach, LANES)
            copy(ahead(part(p, 2, row, h), first * word(p, 5)), word(p, 5), count, K, scale, queries, K)
            copy(ahead(part(p, 16, row, h), first * word(p, 19)), word(p, 19), count, K, 1.0, given, K)
            multiply(queries, K, 1, across, W, weights, W, K, rows, filled, 0)
            multiply(given, K, 1, values, W, scores, W, K, rows, filled, 0)
            for i in range(count):
                seen = S - T + first + i + 1 if causal else S
                hide(ahead(weights, i * W), seen, reach)
                D = dot(ahead(given, i * K), ahead(y, ((row * T + first + i) * H + h) * K), K)
                most, one = get(kept, 2 * (head * T + first + i)), get(kept, 2 * (head * T + first + i) + 1)
                for j in range(0, reach, LANES):
                    weight = exp2(load(weights, i * W + j) + load(bias, j) - most) * one
                    store(weights, i * W + j, weight)
                    store(scores, i * W + j, weight * (load(scores, i * W + j) - D))
            multiply(scores, W, 1, keys, K, moved, K, reach, rows, K, 0)
            copy(moved, K, count, K, 1 / math.sqrt(K), ahead(dq, ((row * T + first) * H + h) * K), H * K)
            multiply(scores, 1, W, queries, K, key_sums, K, count, up_to(reach, ROWS), K, 1)
            multiply(weights, 1, W, given, K, value_sums, K, count, up_to(reach, ROWS), K, 1)
        copy(key_sums, K, S, K, math.log(2), ahead(dk, (row * S * H + h) * K), H * K)
        copy(value_sums, K, S, K, 1.0, ahead(dv, (row * S * H + h) * K), H * K)


@step
def part(p, at, row, h):
    """Where a row's head begins in the tensor that argument `at` is; its strides stand behind it."""
    return ahead(floats(word(p, at)), row * word(p, at + 1) + h * word(p, at + 2))


@step
def up_to(count, whole):
    return (count + whole - 1) // whole * whole


@step
def copy(x, apart, rows, K, scale, y, width):
    """`scale` times the rows of x, `apart` from each other, to those of y."""
    for i in range(rows):
        for j in range(0, K, LANES):
            store(y, i * width + j, load(x, i * apart + j) * scale)


@step
def clear(x, count):
    for i in range(0, count, LANES):
        store(x, i, spread(0.0))


@step
def transpose(x, apart, S, K, y, W):
    """`y[j, s] = x[s, j]`; 0 behind the last s."""
    for s in range(0, S // 8 * 8, 8):
        for j in range(0, K, 8):
            transpose_8(ahead(x, s * apart + j), apart, ahead(y, j * W + s), W)
    for j in range(K):
        for s in range(S // 8 * 8, S):
            put(y, j * W + s, get(x, s * apart + j))
        for s in range(S, W):
            put(y, j * W + s, 0.0)


@step
def multiply(a, row, along, b, panel, c, width, steps, rows, columns, more):
    """`products` of 8 rows and 32 columns at a time, of which the last may be 16."""
    for j in range(0, columns, PANEL):
        for i in range(0, rows, ROWS):
            left, right, sums = ahead(a, i * row), ahead(b, j), ahead(c, i * width + j)
            if columns - j >= PANEL:
                products(left, row, along, right, panel, sums, width, steps, more)
            else:
                narrow_products(left, row, along, right, panel, sums, width, steps, more)


@step
def hide(scores, seen, reach):
    """What a query does not see, up to the last key that any of its block sees."""
    for j in range(seen, up_to(reach, LANES)):
        put(scores, j, -math.inf)


@step
def softmax(scores, bias, reach, kept):
    """Scores become weights `2^(score - most) one`, in place; `kept` gets `most` and `one`."""
    highest, sums = spread(-math.inf), spread(0.0)
    for j in range(0, reach, LANES):
        score = load(scores, j) + load(bias, j)
        store(scores, j, score)
        highest = maximum(score, highest)
    most = largest(highest)
    if most == -math.inf:
        most = 0.0  # nothing is seen: all weights are 2^-inf = 0
    for j in range(0, reach, LANES):
        weight = exp2(load(scores, j) - most)
        store(scores, j, weight)
        sums = sums + weight
    whole = total(sums)
    one = 0.0 if whole == 0 else 1 / whole
    for j in range(0, reach, LANES):
        store(scores, j, load(scores, j) * one)
    put(kept, 0, most)
    put(kept, 1, one)


@step
def dot(a, b, K):
    sums = spread(0.0)
    for j in range(0, K, LANES):
        sums = fma(load(a, j), load(b, j), sums)
    return total(sums)
