"""Kernel of `ops.ssm.selective_scan`: 16 channels per vector, state by state, step by step.

A task is a row of the batch and a share of its channels. B, T, E and N have the meanings of
`ops.ssm.selective_scan`; E is a multiple of 16. States and decays are stored as (..., E/16, N, 16), so that
the values of a group of 16 channels are contiguous. The state before every `chunk`-th step is stored, and the
backward pass recomputes the states of all other steps from these checkpoints. `rates` is A / ln 2, since a
power of 2 is cheaper than a power of e. Steps are E elements apart, so hardware does not predict the next
cache lines. The kernel prefetches the next chunk.
"""

import math

from foveal.ops.kernels.simd import (
    LANES,
    broadcast,
    exp2,
    float_pointer,
    fma,
    load,
    load_int,
    load_scalar,
    prefetch,
    reduce_sum,
    store,
    store_scalar,
)

LN2 = math.log(2)


def forward(task, p):
    """Compute y, replace the initial state by the last, and store the state before each chunk in `kept`."""
    u, delta, rates = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
    )
    B, C, state = float_pointer(load_int(p, 5)), float_pointer(load_int(p, 6)), float_pointer(load_int(p, 7))
    y, kept = float_pointer(load_int(p, 8)), float_pointer(load_int(p, 9))
    T, E, N, chunk, shares = (
        load_int(p, 10),
        load_int(p, 11),
        load_int(p, 12),
        load_int(p, 13),
        load_int(p, 14),
    )
    row, share, groups, chunks = task // shares, task % shares, E // LANES, (T + chunk - 1) // chunk
    for group in range(groups * share // shares, groups * (share + 1) // shares):
        e, size = group * LANES, N * LANES
        state_start, rates_start = (row * groups + group) * size, group * size
        for t in range(T):
            at = row * T + t
            if t % chunk == 0:
                for n in range(0, size, LANES):
                    store(kept, state_start * chunks + t // chunk * size + n, load(state, state_start + n))
                    prefetch(kept, state_start * chunks + (t // chunk + 1) * size + n)
            for array in (u, delta, y):
                prefetch(array, (at + chunk) * E + e)
            d = load(delta, at * E + e)
            v = d * load(u, at * E + e)
            out = broadcast(0.0)
            for n in range(N):
                k = n * LANES
                decay = exp2(d * load(rates, rates_start + k))
                h = fma(decay, load(state, state_start + k), v * load_scalar(B, at * N + n))
                store(state, state_start + k, h)
                out = fma(h, broadcast(load_scalar(C, at * N + n)), out)
            store(y, at * E + e, out)


def backward(task, p):
    """Compute the gradients, from the last chunk to the first.

    `flow` is the gradient of the state, on entry that of the last state. dB and dC are sums over channels,
    computed for each share separately. `scratch` has space for a chunk's states and decays, and for the sums
    of dB and dC over the groups of channels.
    """
    u, delta, rates = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
    )
    B, C, kept, dy = (
        float_pointer(load_int(p, 5)),
        float_pointer(load_int(p, 6)),
        float_pointer(load_int(p, 7)),
        float_pointer(load_int(p, 8)),
    )
    du, ddelta, dA = (
        float_pointer(load_int(p, 9)),
        float_pointer(load_int(p, 10)),
        float_pointer(load_int(p, 11)),
    )
    dB, dC, flow, scratch = (
        float_pointer(load_int(p, 12)),
        float_pointer(load_int(p, 13)),
        float_pointer(load_int(p, 14)),
        float_pointer(load_int(p, 15)),
    )
    T, E, N = load_int(p, 16), load_int(p, 17), load_int(p, 18)
    chunk, shares, rows = load_int(p, 19), load_int(p, 20), load_int(p, 21)
    row, share, groups, chunks = task // shares, task % shares, E // LANES, (T + chunk - 1) // chunk
    size = chunk * N * LANES
    states = task * 4 * size
    decays, sums_B, sums_C = states + size, states + 2 * size, states + 3 * size
    for number in range(chunks - 1, -1, -1):
        first = number * chunk
        steps = min(chunk, T - first)
        for i in range(steps * N):
            store(scratch, sums_B + i * LANES, broadcast(0.0))
            store(scratch, sums_C + i * LANES, broadcast(0.0))
        for group in range(groups * share // shares, groups * (share + 1) // shares):
            e = group * LANES
            state_start, rates_start = (row * groups + group) * N * LANES, group * N * LANES
            # states[i] is the state before step i.
            for k in range(0, N * LANES, LANES):
                prefetch(kept, state_start * chunks + (number - 1) * N * LANES + k)
                store(scratch, states + k, load(kept, state_start * chunks + number * N * LANES + k))
            for i in range(steps):
                at = row * T + first + i
                for array in (u, delta, dy, du, ddelta):
                    prefetch(array, (at - chunk) * E + e)
                d = load(delta, at * E + e)
                v = d * load(u, at * E + e)
                for n in range(N):
                    k = (i * N + n) * LANES
                    decay = exp2(d * load(rates, rates_start + n * LANES))
                    store(scratch, decays + k, decay)
                    if i + 1 < steps:
                        h = fma(decay, load(scratch, states + k), v * load_scalar(B, at * N + n))
                        store(scratch, states + k + N * LANES, h)
            for i in range(steps - 1, -1, -1):
                at = row * T + first + i
                d, x, dy_t = load(delta, at * E + e), load(u, at * E + e), load(dy, at * E + e)
                v = d * x
                to_rates, to_inputs = broadcast(0.0), broadcast(0.0)
                for n in range(N):
                    k, m = (i * N + n) * LANES, state_start + n * LANES
                    b = broadcast(load_scalar(B, at * N + n))
                    g = fma(dy_t, broadcast(load_scalar(C, at * N + n)), load(flow, m))
                    decay = load(scratch, decays + k)
                    old = decay * load(scratch, states + k)
                    store(flow, m, decay * g)
                    store(scratch, sums_C + k, fma(dy_t, fma(v, b, old), load(scratch, sums_C + k)))
                    store(scratch, sums_B + k, fma(g, v, load(scratch, sums_B + k)))
                    to_inputs = fma(g, b, to_inputs)
                    past = g * old
                    to_rates = fma(past, load(rates, rates_start + n * LANES), to_rates)
                    store(dA, m, fma(past, d, load(dA, m)))
                store(du, at * E + e, d * to_inputs)
                store(ddelta, at * E + e, fma(x, to_inputs, to_rates * LN2))
        for i in range(steps * N):
            at = ((share * rows + row) * T + first) * N + i
            store_scalar(dB, at, reduce_sum(load(scratch, sums_B + i * LANES)))
            store_scalar(dC, at, reduce_sum(load(scratch, sums_C + i * LANES)))
