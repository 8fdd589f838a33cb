"""`ops.transformer_step`: one new position of each row through the blocks of a Transformer.

A block's work is in seven phases. A task is a share of one; it begins when all before the phase are done.
Tasks are taken in their order, so whoever waits waits for tasks that somebody is at. Sizes: R rows, D
numbers wide, H heads of K, caches of C slots, E hidden units; D and E are multiples of 16.
"""

import math

from foveal.ops.kernels.cached_attention import attend
from foveal.ops.kernels.gelu import gelu, gelu_tanh
from foveal.ops.kernels.linear import outputs
from foveal.ops.kernels.simd import (
    LANES,
    ahead,
    finish,
    finished,
    floats,
    fma,
    get,
    load,
    maximum,
    number,
    pause,
    put,
    sigmoid,
    spread,
    step,
    store,
    total,
    word,
    words,
)

DONE, TASKS, BLOCKS = 2, 3, 21
"""Places of the arguments: how many tasks are done, how many each phase has, and those of the first block."""
WORDS = 23
"""A block's arguments."""
NORM, PROJECT, ATTEND, OUTPUT, NORM_AGAIN, EXPAND, CONTRACT = range(7)
GELU, GELU_TANH, RELU, SILU = range(4)


def forward(task, p):
    """For each block, `x + attention(norm(x))`, and that plus the feed-forward layer of its norm."""
    each = 0
    for phase in range(7):
        each += word(p, TASKS + phase)
    block, phase = task // each, 0
    first = block * each
    while task >= first + word(p, TASKS + phase):
        first += word(p, TASKS + phase)
        phase += 1
    while finished(p, DONE) < first:
        pause()
    share(phase, task - first, word(p, TASKS + phase), p, BLOCKS + block * WORDS)
    finish(p, DONE)


@step
def share(phase, part, parts, p, b):
    """Number `part` of the `parts` of a phase of the block whose arguments begin at `b`."""
    R, D, H, E, C = word(p, 10), word(p, 11), word(p, 12), word(p, 13), word(p, 14)
    centred, rotary, activation, gated = word(p, 15), word(p, 16), word(p, 17), word(p, 18)
    x, scratch, count = floats(word(p, 19)), floats(word(p, 20)), words(word(p, b + 2))
    K = D // H
    normal, q, k, v = scratch, ahead(scratch, R * D), ahead(scratch, 2 * R * D), ahead(scratch, 3 * R * D)
    mixed, between, angles = ahead(scratch, 4 * R * D), ahead(scratch, 5 * R * D), ahead(scratch, 6 * R * D)
    hidden, gate = ahead(scratch, 7 * R * D), ahead(scratch, 7 * R * D + R * E)
    weights = ahead(scratch, 7 * R * D + 2 * R * E)
    if phase == NORM:
        normalise(x, word(p, b + 3), word(p, b + 4), normal, part, D, centred, number(p, b + 5))
        if rotary:
            turns(angles, part, K, word(count, part))
    elif phase == PROJECT:
        which, third, thirds = part % 3, part // 3, parts // 3
        W, bias, to = word(p, b + 6 + 2 * which), word(p, b + 7 + 2 * which), ahead(q, which * R * D)
        product(normal, W, bias, to, R, D, D, D * third // thirds, D * (third + 1) // thirds)
    elif phase == ATTEND:
        row, some, shares = part // (parts // R), part % (parts // R), parts // R
        first, last = H * some // shares, H * (some + 1) // shares
        if rotary:
            turn(q, angles, row, D, K, first, last)
            turn(k, angles, row, D, K, first, last)
        keys, values = floats(word(p, b)), floats(word(p, b + 1))
        attend(q, k, v, mixed, keys, values, weights, row, word(count, row), C, H, K, first, last)
    elif phase == OUTPUT:
        first, last = D * part // parts, D * (part + 1) // parts
        product(mixed, word(p, b + 12), word(p, b + 13), between, R, D, D, first, last)
        add(between, x, R, D, first, last)
    elif phase == NORM_AGAIN:
        count[part] += 1
        normalise(between, word(p, b + 14), word(p, b + 15), normal, part, D, centred, number(p, b + 16))
    elif phase == EXPAND:
        first, last = E // LANES * part // parts * LANES, E // LANES * (part + 1) // parts * LANES
        product(normal, word(p, b + 17), word(p, b + 18), hidden, R, D, E, first, last)
        if gated:
            product(normal, word(p, b + 19), word(p, b + 20), gate, R, D, E, first, last)
        activate(hidden, gate, R, E, first, last, activation, gated)
    else:
        first, last = D * part // parts, D * (part + 1) // parts
        product(hidden, word(p, b + 21), word(p, b + 22), x, R, E, D, first, last)
        add(x, between, R, D, first, last)


@step
def product(x, W, bias, y, R, K, M, first, last):
    """`ops.linear`; W and bias are addresses, of which the second may be none."""
    outputs(x, floats(W), floats(bias), y, R, K, M, bias != 0, first, last)


@step
def add(y, x, R, D, first, last):
    """`y + x`, in place, of the numbers from `first` to `last` of every row."""
    for row in range(R):
        for i in range(row * D + first, row * D + last):
            put(y, i, get(y, i) + get(x, i))


@step
def normalise(x, gain, bias, y, row, D, centred, epsilon):
    """`ops.normalization.layer_norm` of one row if `centred`, else `rms_norm`."""
    gain, bias = floats(gain), floats(bias)
    own, mean, squares = row * D, spread(0.0), spread(0.0)
    if centred:
        sums = spread(0.0)
        for i in range(own, own + D, LANES):
            sums = sums + load(x, i)
        mean = spread(total(sums) / D)
    for i in range(own, own + D, LANES):
        apart = load(x, i) - mean
        squares = fma(apart, apart, squares)
    scale = spread(1 / math.sqrt(total(squares) / D + epsilon))
    for i in range(0, D, LANES):
        normal = (load(x, own + i) - mean) * scale
        store(y, own + i, fma(normal, load(gain, i), load(bias, i)) if centred else normal * load(gain, i))


@step
def turns(angles, row, K, place):
    """The cosines and sines that `ops.rotary` turns the pairs of a place by, in float64 as there."""
    half = K // 2
    for i in range(half):
        angle = place * 10000.0 ** (-i / half)
        put(angles, row * K + i, math.cos(angle))
        put(angles, row * K + half + i, math.sin(angle))


@step
def turn(x, angles, row, D, K, first, last):
    """`ops.rotary.turn`, in place, of the heads from `first` to `last`."""
    half = K // 2
    for head in range(first, last):
        own = row * D + head * K
        for i in range(half):
            a, b = get(x, own + i), get(x, own + half + i)
            c, s = get(angles, row * K + i), get(angles, row * K + half + i)
            put(x, own + i, a * c - b * s)
            put(x, own + half + i, b * c + a * s)


@step
def activate(x, gate, R, E, first, last, activation, gated):
    """The activation, in place; or `silu(gate)` times what is there."""
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
                store(x, i, maximum(spread(0.0), value))
            else:
                store(x, i, value * sigmoid(value))
