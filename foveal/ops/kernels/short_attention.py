"""Kernel of `ops.attention.short_attention`: 32 queries of a head at a time, against all keys of the head at
once.

A task is a share of the B H heads, computed one after the other in the task's own scratch memory. B, H, T, S
and K have the meanings of `ops.attention.short_attention`; K is a multiple of 16. W is S padded to whole
vectors, and a row's bias also hides the padding. Queries are scaled by `log2(e) / sqrt(K)`, so that weights
are powers of 2. Products are computed for 8 queries at a time. Queries after the last are computed from
arbitrary memory, and never used.
"""

import math

from foveal.ops.kernels.simd import (
    LANES,
    broadcast,
    exp2,
    float_pointer,
    fma,
    kernel_function,
    load,
    load_int,
    load_scalar,
    matmul_8x16,
    matmul_8x32,
    maximum,
    offset,
    reduce_max,
    reduce_sum,
    store,
    store_scalar,
    transpose_8,
)

QUERY_BLOCK, ROWS, PANEL = 32, 8, 32


def forward(task, p):
    """Compute the outputs, (B, T, H, K), and the statistics of the softmax, (B, H, T, 2)."""
    y, kept, tasks, heads = (
        float_pointer(load_int(p, 16)),
        float_pointer(load_int(p, 17)),
        load_int(p, 1),
        load_int(p, 25),
    )
    H, T, S, K, causal = load_int(p, 20), load_int(p, 21), load_int(p, 22), load_int(p, 23), load_int(p, 24)
    W, scale = round_up(S, LANES), 1 / (math.sqrt(K) * math.log(2))
    keys = offset(float_pointer(load_int(p, 18)), task * load_int(p, 19))
    values = offset(keys, K * W)
    queries = offset(values, S * K)
    weights, outputs = offset(queries, QUERY_BLOCK * K), offset(queries, QUERY_BLOCK * (K + W))
    for head in range(heads * task // tasks, heads * (task + 1) // tasks):
        row, h = head // H, head % H
        transpose(head_pointer(p, 6, row, h), load_int(p, 9), S, K, keys, W)
        copy(head_pointer(p, 10, row, h), load_int(p, 13), S, K, 1.0, values, K)
        bias = offset(float_pointer(load_int(p, 14)), row * load_int(p, 15))
        for first in range(0, T, QUERY_BLOCK):
            count = min(QUERY_BLOCK, T - first)
            reach, rows = S - T + first + count if causal else S, round_up(count, ROWS)
            copy(
                offset(head_pointer(p, 2, row, h), first * load_int(p, 5)),
                load_int(p, 5),
                count,
                K,
                scale,
                queries,
                K,
            )
            multiply(queries, K, 1, keys, W, weights, W, K, rows, round_up(reach, LANES), 0)
            for i in range(count):
                visible = S - T + first + i + 1 if causal else S
                mask_scores(offset(weights, i * W), visible, reach)
                softmax(offset(weights, i * W), bias, reach, offset(kept, 2 * (head * T + first + i)))
            multiply(weights, W, 1, values, K, outputs, K, reach, rows, K, 0)
            copy(outputs, K, count, K, 1.0, offset(y, ((row * T + first) * H + h) * K), H * K)


def backward(task, p):
    """Compute the gradients of q (B, T, H, K), k and v (B, S, H, K). The weights are recomputed.

    With `D = sum_i dy_i y_i`, the gradient of a weight is `dy . v`, and that of a score is `weight (dy . v -
    D)`.
    """
    y, kept, tasks, heads = (
        float_pointer(load_int(p, 20)),
        float_pointer(load_int(p, 21)),
        load_int(p, 1),
        load_int(p, 32),
    )
    dq, dk, dv = (
        float_pointer(load_int(p, 22)),
        float_pointer(load_int(p, 23)),
        float_pointer(load_int(p, 24)),
    )
    H, T, S, K, causal = load_int(p, 27), load_int(p, 28), load_int(p, 29), load_int(p, 30), load_int(p, 31)
    W, scale = round_up(S, LANES), 1 / (math.sqrt(K) * math.log(2))
    keys_t = offset(float_pointer(load_int(p, 25)), task * load_int(p, 26))
    values, keys_copy = offset(keys_t, K * W), offset(keys_t, 2 * K * W)
    key_sums = offset(keys_copy, S * K)
    value_sums, queries = offset(key_sums, W * K), offset(key_sums, 2 * W * K)
    dy, dq_block = offset(queries, QUERY_BLOCK * K), offset(queries, 2 * QUERY_BLOCK * K)
    weights, scores = offset(queries, 3 * QUERY_BLOCK * K), offset(queries, QUERY_BLOCK * (3 * K + W))
    for head in range(heads * task // tasks, heads * (task + 1) // tasks):
        row, h = head // H, head % H
        transpose(head_pointer(p, 6, row, h), load_int(p, 9), S, K, keys_t, W)
        transpose(head_pointer(p, 10, row, h), load_int(p, 13), S, K, values, W)
        copy(head_pointer(p, 6, row, h), load_int(p, 9), S, K, 1.0, keys_copy, K)
        clear(key_sums, 2 * W * K)
        bias = offset(float_pointer(load_int(p, 14)), row * load_int(p, 15))
        for first in range(0, T, QUERY_BLOCK):
            count = min(QUERY_BLOCK, T - first)
            reach, rows = S - T + first + count if causal else S, round_up(count, ROWS)
            filled = round_up(reach, LANES)
            copy(
                offset(head_pointer(p, 2, row, h), first * load_int(p, 5)),
                load_int(p, 5),
                count,
                K,
                scale,
                queries,
                K,
            )
            copy(
                offset(head_pointer(p, 16, row, h), first * load_int(p, 19)),
                load_int(p, 19),
                count,
                K,
                1.0,
                dy,
                K,
            )
            multiply(queries, K, 1, keys_t, W, weights, W, K, rows, filled, 0)
            multiply(dy, K, 1, values, W, scores, W, K, rows, filled, 0)
            for i in range(count):
                visible = S - T + first + i + 1 if causal else S
                mask_scores(offset(weights, i * W), visible, reach)
                D = dot(offset(dy, i * K), offset(y, ((row * T + first + i) * H + h) * K), K)
                maximum_score, inverse = (
                    load_scalar(kept, 2 * (head * T + first + i)),
                    load_scalar(kept, 2 * (head * T + first + i) + 1),
                )
                for j in range(0, reach, LANES):
                    weight = exp2(load(weights, i * W + j) + load(bias, j) - maximum_score) * inverse
                    store(weights, i * W + j, weight)
                    store(scores, i * W + j, weight * (load(scores, i * W + j) - D))
            multiply(scores, W, 1, keys_copy, K, dq_block, K, reach, rows, K, 0)
            copy(dq_block, K, count, K, 1 / math.sqrt(K), offset(dq, ((row * T + first) * H + h) * K), H * K)
            multiply(scores, 1, W, queries, K, key_sums, K, count, round_up(reach, ROWS), K, 1)
            multiply(weights, 1, W, dy, K, value_sums, K, count, round_up(reach, ROWS), K, 1)
        copy(key_sums, K, S, K, math.log(2), offset(dk, (row * S * H + h) * K), H * K)
        copy(value_sums, K, S, K, 1.0, offset(dv, (row * S * H + h) * K), H * K)


@kernel_function
def head_pointer(p, at, row, h):
    """Return the start of a row's head in the tensor at argument `at`. The tensor's strides are the next
    arguments."""
    return offset(float_pointer(load_int(p, at)), row * load_int(p, at + 1) + h * load_int(p, at + 2))


@kernel_function
def round_up(count, whole):
    """Return the smallest multiple of `whole` that is at least `count`."""
    return (count + whole - 1) // whole * whole


@kernel_function
def copy(x, stride, rows, K, scale, y, width):
    """Copy `scale` times the rows of x, which are `stride` elements apart, to the rows of y."""
    for i in range(rows):
        for j in range(0, K, LANES):
            store(y, i * width + j, load(x, i * stride + j) * scale)


@kernel_function
def clear(x, count):
    """Fill with zeros."""
    for i in range(0, count, LANES):
        store(x, i, broadcast(0.0))


@kernel_function
def transpose(x, stride, S, K, y, W):
    """Compute `y[j, s] = x[s, j]`, with zeros for s from S on."""
    for s in range(0, S // 8 * 8, 8):
        for j in range(0, K, 8):
            transpose_8(offset(x, s * stride + j), stride, offset(y, j * W + s), W)
    for j in range(K):
        for s in range(S // 8 * 8, S):
            store_scalar(y, j * W + s, load_scalar(x, s * stride + j))
        for s in range(S, W):
            store_scalar(y, j * W + s, 0.0)


@kernel_function
def multiply(a, row, along, b, panel, c, width, steps, rows, columns, more):
    """Compute blocks of 8 rows and 32 columns with `matmul_8x32`. The last block may have 16 columns."""
    for j in range(0, columns, PANEL):
        for i in range(0, rows, ROWS):
            left, right, sums = offset(a, i * row), offset(b, j), offset(c, i * width + j)
            if columns - j >= PANEL:
                matmul_8x32(left, row, along, right, panel, sums, width, steps, more)
            else:
                matmul_8x16(left, row, along, right, panel, sums, width, steps, more)


@kernel_function
def mask_scores(scores, visible, reach):
    """Set the scores of keys that a query does not see to -inf, up to the last key that any query of the
    block sees."""
    for j in range(visible, round_up(reach, LANES)):
        store_scalar(scores, j, -math.inf)


@kernel_function
def softmax(scores, bias, reach, kept):
    """Replace scores by weights `2^(score - maximum) inverse`, in place. Store `maximum` and `inverse` in
    `kept`."""
    highest, sums = broadcast(-math.inf), broadcast(0.0)
    for j in range(0, reach, LANES):
        score = load(scores, j) + load(bias, j)
        store(scores, j, score)
        highest = maximum(score, highest)
    max_score = reduce_max(highest)
    if max_score == -math.inf:
        max_score = 0.0  # no key is visible: all weights are 2^-inf = 0
    for j in range(0, reach, LANES):
        weight = exp2(load(scores, j) - max_score)
        store(scores, j, weight)
        sums = sums + weight
    total = reduce_sum(sums)
    inverse = 0.0 if total == 0 else 1 / total
    for j in range(0, reach, LANES):
        store(scores, j, load(scores, j) * inverse)
    store_scalar(kept, 0, max_score)
    store_scalar(kept, 1, inverse)


@kernel_function
def dot(a, b, K):
    """Return the dot product of K elements."""
    sums = broadcast(0.0)
    for j in range(0, K, LANES):
        sums = fma(load(a, j), load(b, j), sums)
    return reduce_sum(sums)
