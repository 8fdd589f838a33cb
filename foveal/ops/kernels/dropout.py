"""Kernel of `ops.dropout`. The noise is generated where it is used and again in the backward pass, and is
never stored."""

from foveal.ops.kernels.simd import LANES, broadcast, dropout_mask, float_pointer, load, load_int, store


def forward(task, p):
    """Compute the output from the input, or the input's gradient from the output's."""
    x, y = float_pointer(load_int(p, 2)), float_pointer(load_int(p, 3))
    groups, tasks, seed, dropped, steps = (
        load_int(p, 4),
        load_int(p, 1),
        load_int(p, 5),
        load_int(p, 6),
        load_int(p, 7),
    )
    scale = broadcast(steps / (steps - dropped))
    for at in range(groups * task // tasks * LANES, groups * (task + 1) // tasks * LANES, LANES):
        store(y, at, load(x, at) * dropout_mask(seed, at, dropped) * scale)
