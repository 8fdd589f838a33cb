"""Kernel of `ops.recurrent.rwkv`: 16 channels per vector, along the complete row.

A task is a row and a share of its channels. B, T and D have the meanings of `ops.recurrent.rwkv`; D is a
multiple of 16. The sums before every `chunk`-th step are stored, and the backward pass recomputes the sums of
all other steps from these checkpoints. Steps are D elements apart, so hardware does not predict the next
cache lines. The kernel prefetches the step `PREFETCH_STEPS` ahead.
"""

from foveal.ops.kernels.simd import (
    LANES,
    broadcast,
    exp,
    float_pointer,
    fma,
    int_pointer,
    load,
    load_int,
    maximum,
    prefetch,
    store,
)

PREFETCH_STEPS = 8


def forward(task, p):
    """Compute y (0 in the padding), and store checkpoints.

    The initial sums are replaced by the sums after each row's length.
    """
    k, v, w, u = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
        float_pointer(load_int(p, 5)),
    )
    numerators, denominators, exponents = (
        float_pointer(load_int(p, 6)),
        float_pointer(load_int(p, 7)),
        float_pointer(load_int(p, 8)),
    )
    y, kept, lengths = (
        float_pointer(load_int(p, 9)),
        float_pointer(load_int(p, 10)),
        int_pointer(load_int(p, 11)),
    )
    T, D, chunk, shares = load_int(p, 12), load_int(p, 13), load_int(p, 14), load_int(p, 15)
    row, share, groups, chunks = task // shares, task % shares, D // LANES, (T + chunk - 1) // chunk
    for group in range(groups * share // shares, groups * (share + 1) // shares):
        d = group * LANES
        decay, bonus, own = load(w, d), load(u, d), row * D + d
        a, b, top = load(numerators, own), load(denominators, own), load(exponents, own)
        for t in range(T):
            at = (row * T + t) * D + d
            if t % chunk == 0:
                kept_at = ((row * chunks + t // chunk) * D + d) * 3
                store(kept, kept_at, a)
                store(kept, kept_at + LANES, b)
                store(kept, kept_at + 2 * LANES, top)
            if t >= load_int(lengths, row):
                store(y, at, broadcast(0.0))
                continue
            key, value = load(k, at), load(v, at)
            for array in (k, v, y):
                prefetch(array, at + PREFETCH_STEPS * D)
            new_top = maximum(top, bonus + key)
            past, present = exp(top - new_top), exp(bonus + key - new_top)
            store(y, at, fma(past, a, present * value) / fma(past, b, present))
            new_top = maximum(top + decay, key)
            past, present = exp(top + decay - new_top), exp(key - new_top)
            a, b, top = fma(past, a, present * value), fma(past, b, present), new_top
        store(numerators, own, a)
        store(denominators, own, b)
        store(exponents, own, top)


def backward(task, p):
    """Compute the gradients, from the last step to the first, with constant exponents.

    `to_a` and `to_b` are the gradients of numerator and denominator. On entry they belong to the last state.
    `scratch` has space for the six vectors per step that the backward pass needs.
    """
    k, v, w, u = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
        float_pointer(load_int(p, 5)),
    )
    y, kept, dy, lengths = (
        float_pointer(load_int(p, 6)),
        float_pointer(load_int(p, 7)),
        float_pointer(load_int(p, 8)),
        int_pointer(load_int(p, 9)),
    )
    dk, dv, dw, du = (
        float_pointer(load_int(p, 10)),
        float_pointer(load_int(p, 11)),
        float_pointer(load_int(p, 12)),
        float_pointer(load_int(p, 13)),
    )
    numerators, denominators, scratch = (
        float_pointer(load_int(p, 14)),
        float_pointer(load_int(p, 15)),
        float_pointer(load_int(p, 16)),
    )
    T, D, chunk, shares = load_int(p, 17), load_int(p, 18), load_int(p, 19), load_int(p, 20)
    row, share, groups, chunks = task // shares, task % shares, D // LANES, (T + chunk - 1) // chunk
    scratch_start = task * chunk * 6 * LANES
    for group in range(groups * share // shares, groups * (share + 1) // shares):
        d = group * LANES
        decay, bonus, own = load(w, d), load(u, d), row * D + d
        to_a, to_b = load(numerators, own), load(denominators, own)
        to_decay, to_bonus = broadcast(0.0), broadcast(0.0)
        for index in range(chunks - 1, -1, -1):
            first = index * chunk
            steps = max(0, min(chunk, load_int(lengths, row) - first))
            for t in range(max(first, load_int(lengths, row)), min(T, first + chunk)):
                store(dk, (row * T + t) * D + d, broadcast(0.0))
                store(dv, (row * T + t) * D + d, broadcast(0.0))
            kept_at = ((row * chunks + index) * D + d) * 3
            a, b, top = load(kept, kept_at), load(kept, kept_at + LANES), load(kept, kept_at + 2 * LANES)
            for i in range(steps):
                at = (row * T + first + i) * D + d
                key, value, scratch_at = load(k, at), load(v, at), scratch_start + i * 6 * LANES
                for array in (k, v, dy):
                    prefetch(array, at + PREFETCH_STEPS * D)
                for array in (y, dk, dv):
                    prefetch(array, at)
                new_top = maximum(top, bonus + key)
                past, present = exp(top - new_top), exp(bonus + key - new_top)
                share_of_dy = load(dy, at) / fma(past, b, present)
                store(scratch, scratch_at, a)
                store(scratch, scratch_at + LANES, b)
                store(scratch, scratch_at + 2 * LANES, past * share_of_dy)
                store(scratch, scratch_at + 3 * LANES, present * share_of_dy)
                new_top = maximum(top + decay, key)
                past, present = exp(top + decay - new_top), exp(key - new_top)
                store(scratch, scratch_at + 4 * LANES, past)
                store(scratch, scratch_at + 5 * LANES, present)
                a, b, top = fma(past, a, present * value), fma(past, b, present), new_top
            for i in range(steps - 1, -1, -1):
                at = (row * T + first + i) * D + d
                value, out, scratch_at = load(v, at), load(y, at), scratch_start + i * 6 * LANES
                from_past, from_present = (
                    load(scratch, scratch_at + 2 * LANES),
                    load(scratch, scratch_at + 3 * LANES),
                )
                past, present = load(scratch, scratch_at + 4 * LANES), load(scratch, scratch_at + 5 * LANES)
                through = from_present * (value - out)
                store(dv, at, fma(present, to_a, from_present))
                store(dk, at, fma(present, fma(value, to_a, to_b), through))
                to_bonus = to_bonus + through
                kept_a, kept_b = past * to_a, past * to_b
                to_decay = fma(
                    kept_a,
                    load(scratch, scratch_at),
                    fma(kept_b, load(scratch, scratch_at + LANES), to_decay),
                )
                to_a, to_b = kept_a + from_past, kept_b - from_past * out
        store(numerators, own, to_a)
        store(denominators, own, to_b)
        store(dw, own, to_decay)
        store(du, own, to_bonus)
