"""Kernel of `ops.gelu`, elementwise. The backward pass recomputes the derivative from the input."""

import math

from foveal.ops.kernels.simd import (
    LANES,
    always_inline,
    broadcast,
    copysign,
    exp,
    float_pointer,
    fma,
    load,
    load_int,
    maximum,
    store,
    tanh,
)

CLAMP_BELOW = -64.0
"""Below this value both forms are 0 and have no slope. Squares of larger magnitudes would overflow."""
TANH_SCALE, TANH_CUBIC = math.sqrt(2 / math.pi), 0.044715


def forward(task, p):
    """Compute the output. `approximate` selects the tanh form."""
    x, y = float_pointer(load_int(p, 2)), float_pointer(load_int(p, 3))
    groups, tasks, approximate = load_int(p, 4), load_int(p, 1), load_int(p, 5)
    for at in range(groups * task // tasks * LANES, groups * (task + 1) // tasks * LANES, LANES):
        value = load(x, at)
        store(y, at, gelu_tanh(value) if approximate else gelu(value))


def backward(task, p):
    """Compute the input's gradient from the output's."""
    x, dy, dx = float_pointer(load_int(p, 2)), float_pointer(load_int(p, 3)), float_pointer(load_int(p, 4))
    groups, tasks, approximate = load_int(p, 5), load_int(p, 1), load_int(p, 6)
    for at in range(groups * task // tasks * LANES, groups * (task + 1) // tasks * LANES, LANES):
        value = load(x, at)
        if approximate:
            bounded = clamp_magnitude(value)
            t = tanh(tanh_argument(bounded))
            argument_slope = fma(
                bounded * bounded, broadcast(3 * TANH_CUBIC * TANH_SCALE), broadcast(TANH_SCALE)
            )
            slope = 0.5 * (t + 1.0) + 0.5 * bounded * (1.0 - t * t) * argument_slope
        else:
            below = maximum(broadcast(CLAMP_BELOW), 0.0 - maximum(0.0 - value, value))
            density = exp(below * below * -0.5) * (1 / math.sqrt(2 * math.pi))
            slope = 0.5 + copysign(0.5 - lower_tail(below), value) + copysign(below, value) * density
        store(dx, at, load(dy, at) * slope)


@always_inline
def gelu(x):
    """Return `x Phi(x)`."""
    below = maximum(broadcast(CLAMP_BELOW), 0.0 - maximum(0.0 - x, x))
    return fma(below, lower_tail(below), maximum(broadcast(0.0), x))


@always_inline
def gelu_tanh(x):
    """Return the tanh approximation."""
    return x * 0.5 * (tanh(tanh_argument(clamp_magnitude(x))) + 1.0)


@always_inline
def lower_tail(x):
    """Return Phi(x) for x <= 0, half the complementary error function of -x / sqrt(2)."""
    t = 1.0 / fma(x, broadcast(-0.3275911 / math.sqrt(2)), broadcast(1.0))
    power = fma(t, broadcast(1.061405429), broadcast(-1.453152027))
    power = fma(t, power, broadcast(1.421413741))
    power = fma(t, power, broadcast(-0.284496736))
    power = fma(t, power, broadcast(0.254829592))
    return 0.5 * t * power * exp(x * x * -0.5)


@always_inline
def clamp_magnitude(x):
    """Return `x`, clamped to -64 .. 64."""
    return 0.0 - maximum(broadcast(CLAMP_BELOW), 0.0 - maximum(broadcast(CLAMP_BELOW), x))


@always_inline
def tanh_argument(x):
    """Return the argument of the tanh in GPT-2's approximation."""
    return x * fma(x * x, broadcast(TANH_CUBIC * TANH_SCALE), broadcast(TANH_SCALE))
