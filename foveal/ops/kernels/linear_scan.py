"""`ops.scan` of complex numbers: 8 of them in a vector, real and imaginary parts beside each other.

A task is a row and one share of its states. Sizes: B, T as there, N twice the number of complex states, a
multiple of 16.
"""

from foveal.ops.kernels.simd import LANES, floats, fma, load, store, swap, word


def forward(task, p):
    """`s_t = decay s_(t-1) + v_t`, forwards or, with `backwards`, from the last step to the first.

    `real` holds the real part of each decay twice, `turned` the imaginary one with a minus and a plus.
    """
    real, turned, v = floats(word(p, 2)), floats(word(p, 3)), floats(word(p, 4))
    first, states = floats(word(p, 5)), floats(word(p, 6))
    T, N, shares, backwards = word(p, 7), word(p, 8), word(p, 9), word(p, 10)
    row, share, groups = task // shares, task % shares, N // LANES
    for group in range(groups * share // shares, groups * (share + 1) // shares):
        n = group * LANES
        a, b, s = load(real, n), load(turned, n), load(first, row * N + n)
        for step in range(T):
            at = (row * T + (T - 1 - step if backwards else step)) * N + n
            s = fma(a, s, fma(b, swap(s), load(v, at)))
            store(states, at, s)
