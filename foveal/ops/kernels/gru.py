"""`ops.recurrent.gru`: the pointwise part of a step, once the recurrent product is there, and its way back.

A task is a share of the rows. Sizes: B, H as there, H a multiple of 16; what has a number for each time step
is given whole and lies time first, `t` is the step. A row whose length is over keeps its state.

    r = σ(p_r + a_r)    z = σ(p_z + a_z)    m = a_n + b_n    n = tanh(p_n + r * m)    h_t = n + z * (h - n)

where `a` is the recurrent product of `h`, the state before. `kept` has m, r, z, n side by side.
"""

from foveal.ops.kernels.simd import (
    LANES,
    broadcast,
    float_pointer,
    fma,
    int_pointer,
    load,
    load_int,
    sigmoid,
    store,
    tanh,
)


def forward(task, p):
    """`h_t` behind `h` in `states`, from the projected inputs and the product; `slot` is where to keep."""
    projected, product, b_n = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
    )
    states, kept, lengths = (
        float_pointer(load_int(p, 5)),
        float_pointer(load_int(p, 6)),
        int_pointer(load_int(p, 7)),
    )
    B, H, slot, t = load_int(p, 8), load_int(p, 9), load_int(p, 10), load_int(p, 11)
    tasks = load_int(p, 1)
    for b in range(B * task // tasks, B * (task + 1) // tasks):
        before, after = (t * B + b) * H, ((t + 1) * B + b) * H
        if t >= load_int(lengths, b):
            for j in range(0, H, LANES):
                store(states, after + j, load(states, before + j))
        else:
            given, own, keep = (t * B + b) * 3 * H, b * 3 * H, (slot * t * B + b) * 4 * H
            for j in range(0, H, LANES):
                r = sigmoid(load(projected, given + j) + load(product, own + j))
                z = sigmoid(load(projected, given + H + j) + load(product, own + H + j))
                m = load(product, own + 2 * H + j) + load(b_n, j)
                n = tanh(fma(r, m, load(projected, given + 2 * H + j)))
                store(states, after + j, fma(z, load(states, before + j) - n, n))
                store(kept, keep + j, m)
                store(kept, keep + H + j, r)
                store(kept, keep + 2 * H + j, z)
                store(kept, keep + 3 * H + j, n)


def backward(task, p):
    """`flow` becomes the gradient of `h` but for what comes through the product of this step.

    On entry it is that of `h_t` but for `dproduct`, what came through the product of the step after, and
    `dy`. The gradients `d` lie as `a_n, r, z, p_n`: the product's are the first three, the input's the last.
    """
    dy, flow, dproduct, d = (
        float_pointer(load_int(p, 2)),
        float_pointer(load_int(p, 3)),
        float_pointer(load_int(p, 4)),
        float_pointer(load_int(p, 5)),
    )
    states, kept, lengths = (
        float_pointer(load_int(p, 6)),
        float_pointer(load_int(p, 7)),
        int_pointer(load_int(p, 8)),
    )
    B, H, t = load_int(p, 9), load_int(p, 10), load_int(p, 11)
    tasks = load_int(p, 1)
    for b in range(B * task // tasks, B * (task + 1) // tasks):
        at, own, keep = (t * B + b) * H, b * H, (t * B + b) * 4 * H
        if t >= load_int(lengths, b):
            for j in range(0, H, LANES):
                dh = load(flow, own + j) + load(dproduct, own + j) + load(dy, at + j)
                store(flow, own + j, dh)
            for j in range(0, 4 * H, LANES):
                store(d, keep + j, broadcast(0.0))
        else:
            for j in range(0, H, LANES):
                dh = load(flow, own + j) + load(dproduct, own + j) + load(dy, at + j)
                m, r = load(kept, keep + j), load(kept, keep + H + j)
                z, n = load(kept, keep + 2 * H + j), load(kept, keep + 3 * H + j)
                through = dh * z
                dn = (dh - through) * (1.0 - n * n)
                to_product = dn * r
                store(flow, own + j, through)
                store(d, keep + j, to_product)
                store(d, keep + H + j, to_product * m * (1.0 - r))
                store(d, keep + 2 * H + j, through * (load(states, at + j) - n) * (1.0 - z))
                store(d, keep + 3 * H + j, dn)
