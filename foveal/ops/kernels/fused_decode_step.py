"""Kernel of `ops.fused_decode_step`: one new position per row through the blocks of a Transformer.

The work of a block has seven phases. A task is a share of a phase, and begins when all tasks of earlier
phases are done. Tasks are taken in order, so a waiting task always waits for tasks that are running. Sizes: R
rows, width D, H heads of width K, caches of C slots, and E hidden units. D and E are multiples of 16.
"""

import math

from foveal.ops.kernels.cached_attention import attend_row
from foveal.ops.kernels.gelu import gelu, gelu_tanh
from foveal.ops.kernels.linear import output_range
from foveal.ops.kernels.simd import (
    LANES,
    broadcast,
    count_done,
    float_pointer,
    fma,
    int_pointer,
    kernel_function,
    load,
    load_double,
    load_int,
    load_scalar,
    maximum,
    offset,
    pause,
    reduce_sum,
    sigmoid,
    signal_done,
    store,
    store_scalar,
)

DONE_ARGUMENT, TASKS_ARGUMENT, BLOCKS_ARGUMENT = 2, 3, 21
"""Indices of the arguments: the number of tasks done, the task counts of the phases, and the first block."""
BLOCK_ARGUMENTS = 23
"""Number of arguments of a block."""
NORM, PROJECT, ATTEND, OUTPUT, FEEDFORWARD_NORM, EXPAND, CONTRACT = range(7)
GELU, GELU_TANH, RELU, SILU = range(4)


def forward(task, p):
    """Compute `x + attention(norm(x))` for each block, then add the block's feed-forward layer of the norm of
    the sum."""
    each = 0
    for phase in range(7):
        each += load_int(p, TASKS_ARGUMENT + phase)
    block, phase = task // each, 0
    first = block * each
    while task >= first + load_int(p, TASKS_ARGUMENT + phase):
        first += load_int(p, TASKS_ARGUMENT + phase)
        phase += 1
    while count_done(p, DONE_ARGUMENT) < first:
        pause()
    run_task(
        phase, task - first, load_int(p, TASKS_ARGUMENT + phase), p, BLOCKS_ARGUMENT + block * BLOCK_ARGUMENTS
    )
    signal_done(p, DONE_ARGUMENT)


@kernel_function
def run_task(phase, part, parts, p, b):
    """Run share `part` of `parts` of a phase, for the block whose arguments begin at `b`."""
    R, D, H, E, C = load_int(p, 10), load_int(p, 11), load_int(p, 12), load_int(p, 13), load_int(p, 14)
    centered, rotary, activation, gated = load_int(p, 15), load_int(p, 16), load_int(p, 17), load_int(p, 18)
    x, scratch, count = (
        float_pointer(load_int(p, 19)),
        float_pointer(load_int(p, 20)),
        int_pointer(load_int(p, b + 2)),
    )
    K = D // H
    normal, q, k, v = scratch, offset(scratch, R * D), offset(scratch, 2 * R * D), offset(scratch, 3 * R * D)
    context, residual, angles = (
        offset(scratch, 4 * R * D),
        offset(scratch, 5 * R * D),
        offset(scratch, 6 * R * D),
    )
    hidden, gate = offset(scratch, 7 * R * D), offset(scratch, 7 * R * D + R * E)
    weights = offset(scratch, 7 * R * D + 2 * R * E)
    if phase == NORM:
        normalize(x, load_int(p, b + 3), load_int(p, b + 4), normal, part, D, centered, load_double(p, b + 5))
        if rotary:
            rotary_angles(angles, part, K, load_int(count, part))
    elif phase == PROJECT:
        projection, share, shares = part % 3, part // 3, parts // 3
        W, bias, target = (
            load_int(p, b + 6 + 2 * projection),
            load_int(p, b + 7 + 2 * projection),
            offset(q, projection * R * D),
        )
        matmul(normal, W, bias, target, R, D, D, D * share // shares, D * (share + 1) // shares)
    elif phase == ATTEND:
        row, head_share, shares = part // (parts // R), part % (parts // R), parts // R
        first, last = H * head_share // shares, H * (head_share + 1) // shares
        if rotary:
            rotate_pairs(q, angles, row, D, K, first, last)
            rotate_pairs(k, angles, row, D, K, first, last)
        keys, values = float_pointer(load_int(p, b)), float_pointer(load_int(p, b + 1))
        attend_row(q, k, v, context, keys, values, weights, row, load_int(count, row), C, H, K, first, last)
    elif phase == OUTPUT:
        first, last = D * part // parts, D * (part + 1) // parts
        matmul(context, load_int(p, b + 12), load_int(p, b + 13), residual, R, D, D, first, last)
        add_in_place(residual, x, R, D, first, last)
    elif phase == FEEDFORWARD_NORM:
        count[part] += 1
        normalize(
            residual,
            load_int(p, b + 14),
            load_int(p, b + 15),
            normal,
            part,
            D,
            centered,
            load_double(p, b + 16),
        )
    elif phase == EXPAND:
        first, last = E // LANES * part // parts * LANES, E // LANES * (part + 1) // parts * LANES
        matmul(normal, load_int(p, b + 17), load_int(p, b + 18), hidden, R, D, E, first, last)
        if gated:
            matmul(normal, load_int(p, b + 19), load_int(p, b + 20), gate, R, D, E, first, last)
        activate(hidden, gate, R, E, first, last, activation, gated)
    else:
        first, last = D * part // parts, D * (part + 1) // parts
        matmul(hidden, load_int(p, b + 21), load_int(p, b + 22), x, R, E, D, first, last)
        add_in_place(x, residual, R, D, first, last)


@kernel_function
def matmul(x, W, bias, y, R, K, M, first, last):
    """Compute `ops.linear`. W and bias are addresses; for bias the address 0 means no bias."""
    output_range(x, float_pointer(W), float_pointer(bias), y, R, K, M, bias != 0, first, last)


@kernel_function
def add_in_place(y, x, R, D, first, last):
    """Compute `y + x`, in place, for the elements from `first` to `last` of every row."""
    for row in range(R):
        for i in range(row * D + first, row * D + last):
            store_scalar(y, i, load_scalar(y, i) + load_scalar(x, i))


@kernel_function
def normalize(x, gain, bias, y, row, D, centered, epsilon):
    """Compute `ops.normalization.layer_norm` of one row if `centered`, else `rms_norm`."""
    gain, bias = float_pointer(gain), float_pointer(bias)
    own, mean, squares = row * D, broadcast(0.0), broadcast(0.0)
    if centered:
        sums = broadcast(0.0)
        for i in range(own, own + D, LANES):
            sums = sums + load(x, i)
        mean = broadcast(reduce_sum(sums) / D)
    for i in range(own, own + D, LANES):
        deviation = load(x, i) - mean
        squares = fma(deviation, deviation, squares)
    scale = broadcast(1 / math.sqrt(reduce_sum(squares) / D + epsilon))
    for i in range(0, D, LANES):
        normalized = (load(x, own + i) - mean) * scale
        store(
            y,
            own + i,
            fma(normalized, load(gain, i), load(bias, i)) if centered else normalized * load(gain, i),
        )


@kernel_function
def rotary_angles(angles, row, K, position):
    """Compute the cosines and sines of `ops.attention.rotary` for one position, in float64 as
    `ops.attention.rotary` does."""
    half = K // 2
    for i in range(half):
        angle = position * 10000.0 ** (-i / half)
        store_scalar(angles, row * K + i, math.cos(angle))
        store_scalar(angles, row * K + half + i, math.sin(angle))


@kernel_function
def rotate_pairs(x, angles, row, D, K, first, last):
    """Compute `ops.attention.rotary.rotate_pairs`, in place, for the heads from `first` to `last`."""
    half = K // 2
    for head in range(first, last):
        own = row * D + head * K
        for i in range(half):
            a, b = load_scalar(x, own + i), load_scalar(x, own + half + i)
            c, s = load_scalar(angles, row * K + i), load_scalar(angles, row * K + half + i)
            store_scalar(x, own + i, a * c - b * s)
            store_scalar(x, own + half + i, b * c + a * s)


@kernel_function
def activate(x, gate, R, E, first, last, activation, gated):
    """Apply the activation in place. If `gated`, multiply by `silu(gate)` instead."""
    for row in range(R):
        for i in range(row * E + first, row * E + last, LANES):
            value = load(x, i)
            if gated:
                store(x, i, load(gate, i) * sigmoid(load(gate, i)) * value)
            elif activation == GELU:
                store(x, i, gelu(value))
            elif activation == GELU_TANH:
                store(x, i, gelu_tanh(value))
            elif activation == RELU:
                store(x, i, maximum(broadcast(0.0), value))
            else:
                store(x, i, value * sigmoid(value))
