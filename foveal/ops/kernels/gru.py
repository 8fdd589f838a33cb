"""Kernel of `ops.recurrent.gru`: the elementwise part of a step, after the recurrent product, and its
gradient.

A task is a share of the rows. B and H have the meanings of `ops.recurrent.gru`; H is a multiple of 16. Arrays
over time are passed whole, with time as the first axis, and `t` is the step. A row keeps its state after its
length.

    r = σ(p_r + a_r)    z = σ(p_z + a_z)    m = a_n + b_n    n = tanh(p_n + r * m)    h_t = n + z * (h - n)

where `a` is the recurrent product of `h`, the previous state. `kept` has m, r, z, n side by side.
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
    """Compute `h_t` from the previous state `h` in `states`, the projected inputs and the recurrent product.

    `slot` is 1 if all steps are kept for the backward pass, else 0.
    """
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
            input_start, product_start, kept_start = (
                (t * B + b) * 3 * H,
                b * 3 * H,
                (slot * t * B + b) * 4 * H,
            )
            for j in range(0, H, LANES):
                r = sigmoid(load(projected, input_start + j) + load(product, product_start + j))
                z = sigmoid(load(projected, input_start + H + j) + load(product, product_start + H + j))
                m = load(product, product_start + 2 * H + j) + load(b_n, j)
                n = tanh(fma(r, m, load(projected, input_start + 2 * H + j)))
                store(states, after + j, fma(z, load(states, before + j) - n, n))
                store(kept, kept_start + j, m)
                store(kept, kept_start + H + j, r)
                store(kept, kept_start + 2 * H + j, z)
                store(kept, kept_start + 3 * H + j, n)


def backward(task, p):
    """Replace `flow` by the gradient of `h`, without the part through the recurrent product of this step.

    On entry, `flow` is the gradient of `h_t` without `dy`, and without `dproduct`, the part through the
    recurrent product of the next step. The gradients `d` have the order `a_n, r, z, p_n`. The first three are
    the gradients of the recurrent product, the last three those of the projected input.
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
        at, state_start, kept_start = (t * B + b) * H, b * H, (t * B + b) * 4 * H
        if t >= load_int(lengths, b):
            for j in range(0, H, LANES):
                dh = load(flow, state_start + j) + load(dproduct, state_start + j) + load(dy, at + j)
                store(flow, state_start + j, dh)
            for j in range(0, 4 * H, LANES):
                store(d, kept_start + j, broadcast(0.0))
        else:
            for j in range(0, H, LANES):
                dh = load(flow, state_start + j) + load(dproduct, state_start + j) + load(dy, at + j)
                m, r = load(kept, kept_start + j), load(kept, kept_start + H + j)
                z, n = load(kept, kept_start + 2 * H + j), load(kept, kept_start + 3 * H + j)
                through = dh * z
                dn = (dh - through) * (1.0 - n * n)
                to_product = dn * r
                store(flow, state_start + j, through)
                store(d, kept_start + j, to_product)
                store(d, kept_start + H + j, to_product * m * (1.0 - r))
                store(d, kept_start + 2 * H + j, through * (load(states, at + j) - n) * (1.0 - z))
                store(d, kept_start + 3 * H + j, dn)
