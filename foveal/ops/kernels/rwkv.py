"""`ops.rwkv`: 16 channels side by side, along the whole row.

A task is a row and one share of its channels. Sizes: B, T, D as there, D a multiple of 16. Of every
`chunk` steps the sums before them are kept, from which theirs are made anew on the way back. Steps lie D
numbers apart, so no processor guesses which lines come next: those `AHEAD` of a step are fetched.
"""

from foveal.ops.kernels.simd import LANES, exp, fetch, floats, fma, load, maximum, spread, store, word, words

AHEAD = 8


def forward(task, p):
    """y (0 in the padding), the sums after each row's length in place of the first, and the kept ones."""
    k, v, w, u = floats(word(p, 2)), floats(word(p, 3)), floats(word(p, 4)), floats(word(p, 5))
    numerators, denominators, exponents = floats(word(p, 6)), floats(word(p, 7)), floats(word(p, 8))
    y, kept, lengths = floats(word(p, 9)), floats(word(p, 10)), words(word(p, 11))
    T, D, chunk, shares = word(p, 12), word(p, 13), word(p, 14), word(p, 15)
    row, share, groups, chunks = task // shares, task % shares, D // LANES, (T + chunk - 1) // chunk
    for group in range(groups * share // shares, groups * (share + 1) // shares):
        d = group * LANES
        decay, bonus, own = load(w, d), load(u, d), row * D + d
        a, b, top = load(numerators, own), load(denominators, own), load(exponents, own)
        for t in range(T):
            at = (row * T + t) * D + d
            if t % chunk == 0:
                place = ((row * chunks + t // chunk) * D + d) * 3
                store(kept, place, a)
                store(kept, place + LANES, b)
                store(kept, place + 2 * LANES, top)
            if t >= word(lengths, row):
                store(y, at, spread(0.0))
                continue
            key, value = load(k, at), load(v, at)
            for coming in (k, v, y):
                fetch(coming, at + AHEAD * D)
            high = maximum(top, bonus + key)
            past, present = exp(top - high), exp(bonus + key - high)
            store(y, at, fma(past, a, present * value) / fma(past, b, present))
            high = maximum(top + decay, key)
            past, present = exp(top + decay - high), exp(key - high)
            a, b, top = fma(past, a, present * value), fma(past, b, present), high
        store(numerators, own, a)
        store(denominators, own, b)
        store(exponents, own, top)


def backward(task, p):
    """The gradients, from the last step to the first, with the exponents for constants.

    `to_a`, `to_b` are the gradients of numerator and denominator: the last one's at first. `scratch` has
    room for the six vectors a step that the way back needs.
    """
    k, v, w, u = floats(word(p, 2)), floats(word(p, 3)), floats(word(p, 4)), floats(word(p, 5))
    y, kept, dy, lengths = floats(word(p, 6)), floats(word(p, 7)), floats(word(p, 8)), words(word(p, 9))
    dk, dv, dw, du = floats(word(p, 10)), floats(word(p, 11)), floats(word(p, 12)), floats(word(p, 13))
    numerators, denominators, scratch = floats(word(p, 14)), floats(word(p, 15)), floats(word(p, 16))
    T, D, chunk, shares = word(p, 17), word(p, 18), word(p, 19), word(p, 20)
    row, share, groups, chunks = task // shares, task % shares, D // LANES, (T + chunk - 1) // chunk
    room = task * chunk * 6 * LANES
    for group in range(groups * share // shares, groups * (share + 1) // shares):
        d = group * LANES
        decay, bonus, own = load(w, d), load(u, d), row * D + d
        to_a, to_b = load(numerators, own), load(denominators, own)
        to_decay, to_bonus = spread(0.0), spread(0.0)
        for number in range(chunks - 1, -1, -1):
            first = number * chunk
            steps = max(0, min(chunk, word(lengths, row) - first))
            for t in range(max(first, word(lengths, row)), min(T, first + chunk)):
                store(dk, (row * T + t) * D + d, spread(0.0))
                store(dv, (row * T + t) * D + d, spread(0.0))
            place = ((row * chunks + number) * D + d) * 3
            a, b, top = load(kept, place), load(kept, place + LANES), load(kept, place + 2 * LANES)
            for i in range(steps):
                at = (row * T + first + i) * D + d
                key, value, note = load(k, at), load(v, at), room + i * 6 * LANES
                for coming in (k, v, dy):
                    fetch(coming, at + AHEAD * D)
                for coming in (y, dk, dv):
                    fetch(coming, at)
                high = maximum(top, bonus + key)
                past, present = exp(top - high), exp(bonus + key - high)
                share_of_dy = load(dy, at) / fma(past, b, present)
                store(scratch, note, a)
                store(scratch, note + LANES, b)
                store(scratch, note + 2 * LANES, past * share_of_dy)
                store(scratch, note + 3 * LANES, present * share_of_dy)
                high = maximum(top + decay, key)
                past, present = exp(top + decay - high), exp(key - high)
                store(scratch, note + 4 * LANES, past)
                store(scratch, note + 5 * LANES, present)
                a, b, top = fma(past, a, present * value), fma(past, b, present), high
            for i in range(steps - 1, -1, -1):
                at = (row * T + first + i) * D + d
                value, out, note = load(v, at), load(y, at), room + i * 6 * LANES
                from_past, from_present = load(scratch, note + 2 * LANES), load(scratch, note + 3 * LANES)
                past, present = load(scratch, note + 4 * LANES), load(scratch, note + 5 * LANES)
                through = from_present * (value - out)
                store(dv, at, fma(present, to_a, from_present))
                store(dk, at, fma(present, fma(value, to_a, to_b), through))
                to_bonus = to_bonus + through
                kept_a, kept_b = past * to_a, past * to_b
                to_decay = fma(
                    kept_a, load(scratch, note), fma(kept_b, load(scratch, note + LANES), to_decay)
                )
                to_a, to_b = kept_a + from_past, kept_b - from_past * out
        store(numerators, own, to_a)
        store(denominators, own, to_b)
        store(dw, own, to_decay)
        store(du, own, to_bonus)
