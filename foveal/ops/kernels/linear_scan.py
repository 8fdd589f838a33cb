"""Kernel of `ops.ssm.linear_scan` for complex numbers: 8 numbers per vector, real and imaginary parts
alternating.

A task is a row and a share of its states. A task computes BLOCK steps of all its states, then the next BLOCK
steps, since in long rows each step is on another memory page. B and T have the meanings of
`ops.ssm.linear_scan`. N is twice the number of complex states, and a multiple of 16.
"""

from foveal.ops.kernels.simd import LANES, broadcast, float_pointer, fma, load, load_int, store, swap_pairs

BLOCK = 64


def forward(task, p):
    """Compute `s_t = decay s_(t-1) + v_t`.

    `real` has the real part of each decay twice. `turned` has the imaginary part with a minus and a plus
    sign.
    """
    real, turned, v = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
    )
    first, states = float_pointer(load_int(p, 5)), float_pointer(load_int(p, 6))
    T, N, shares = load_int(p, 7), load_int(p, 8), load_int(p, 9)
    row, share, groups = task // shares, task % shares, N // LANES
    for begin in range(0, T, BLOCK):
        for group in range(groups * share // shares, groups * (share + 1) // shares):
            n = group * LANES
            a, b = load(real, n), load(turned, n)
            s = load(states, (row * T + begin - 1) * N + n) if begin > 0 else load(first, row * N + n)
            for t in range(begin, min(T, begin + BLOCK)):
                at = (row * T + t) * N + n
                s = fma(a, s, fma(b, swap_pairs(s), load(v, at)))
                store(states, at, s)


def backward(task, p):
    """Compute `a_t = gradient_t + conj(decay) a_(t+1)`, and its products with the previous states.

    The sums over t of products of equal parts of `a_t` and `s_(t-1)` (real with real) are added to
    `straight`. The sums of products of different parts (real with imaginary) are added to `crossed`.
    """
    real, turned, gradient = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
    )
    first, states, flow = (
        float_pointer(load_int(p, 5)),
        float_pointer(load_int(p, 6)),
        float_pointer(load_int(p, 7)),
    )
    straight, crossed = float_pointer(load_int(p, 8)), float_pointer(load_int(p, 9))
    T, N, shares = load_int(p, 10), load_int(p, 11), load_int(p, 12)
    row, share, groups = task // shares, task % shares, N // LANES
    for block in range((T + BLOCK - 1) // BLOCK - 1, -1, -1):
        begin, end = block * BLOCK, min(T, (block + 1) * BLOCK)
        for group in range(groups * share // shares, groups * (share + 1) // shares):
            n = group * LANES
            state_start = row * N + n
            c, d = load(real, n), 0.0 - load(turned, n)
            a = load(flow, (row * T + end) * N + n) if end < T else broadcast(0.0)
            straight_sum, crossed_sum = load(straight, state_start), load(crossed, state_start)
            for t in range(end - 1, begin - 1, -1):
                at = (row * T + t) * N + n
                a = fma(c, a, fma(d, swap_pairs(a), load(gradient, at)))
                store(flow, at, a)
                previous = load(states, at - N) if t > 0 else load(first, state_start)
                straight_sum, crossed_sum = (
                    fma(a, previous, straight_sum),
                    fma(a, swap_pairs(previous), crossed_sum),
                )
            store(straight, state_start, straight_sum)
            store(crossed, state_start, crossed_sum)
