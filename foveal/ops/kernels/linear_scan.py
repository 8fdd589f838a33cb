"""`ops.ssm.linear_scan` of complex numbers: 8 of them in a vector, real and imaginary parts side by side.

A task is a row and one share of its states, BLOCK steps of all of them and then the next: of long rows each
step lies on another page. Sizes: B, T as there, N twice the number of complex states, a multiple of 16.
"""

from foveal.ops.kernels.simd import LANES, broadcast, float_pointer, fma, load, load_int, store, swap_pairs

BLOCK = 64


def forward(task, p):
    """`s_t = decay s_(t-1) + v_t`.

    `real` holds the real part of each decay twice, `turned` the imaginary one with a minus and a plus.
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
    """`a_t = gradient_t + conj(decay) a_(t+1)`, and its products with the states before.

    To `straight` is added the sum of `a_t s_(t-1)` by parts, to `crossed` that of each part with the state's
    other one.
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
            own = row * N + n
            c, d = load(real, n), 0.0 - load(turned, n)
            a = load(flow, (row * T + end) * N + n) if end < T else broadcast(0.0)
            along, across = load(straight, own), load(crossed, own)
            for t in range(end - 1, begin - 1, -1):
                at = (row * T + t) * N + n
                a = fma(c, a, fma(d, swap_pairs(a), load(gradient, at)))
                store(flow, at, a)
                before = load(states, at - N) if t > 0 else load(first, own)
                along, across = fma(a, before, along), fma(a, swap_pairs(before), across)
            store(straight, own, along)
            store(crossed, own, across)
