"""`ops.dropout`: the noise is drawn where it is used, and again on the way back, so it is never stored."""

from foveal.ops.kernels.simd import LANES, floats, kept, load, spread, store, word


def forward(task, p):
    """The output; from the output's gradient, the input's."""
    x, y = floats(word(p, 2)), floats(word(p, 3))
    groups, tasks, seed, dropped, of = word(p, 4), word(p, 1), word(p, 5), word(p, 6), word(p, 7)
    scale = spread(of / (of - dropped))
    for at in range(groups * task // tasks * LANES, groups * (task + 1) // tasks * LANES, LANES):
        store(y, at, load(x, at) * kept(seed, at, dropped) * scale)
