"""`ops.gelu`: by elements; on the way back its slope is made again from the input."""

import math

from foveal.ops.kernels.simd import (
    LANES,
    copysign,
    exp,
    floats,
    fma,
    inlined,
    load,
    maximum,
    spread,
    store,
    tanh,
    word,
)

FAR = -64.0
"""Below it both forms are 0 and have no slope; squares of what is far would overflow."""
INNER, CUBED = math.sqrt(2 / math.pi), 0.044715


def forward(task, p):
    """The output; `tanh` says which form."""
    x, y = floats(word(p, 2)), floats(word(p, 3))
    groups, tasks, approximate = word(p, 4), word(p, 1), word(p, 5)
    for at in range(groups * task // tasks * LANES, groups * (task + 1) // tasks * LANES, LANES):
        value = load(x, at)
        store(y, at, gelu_tanh(value) if approximate else gelu(value))


def backward(task, p):
    """The input's gradient from the output's."""
    x, given, dx = floats(word(p, 2)), floats(word(p, 3)), floats(word(p, 4))
    groups, tasks, approximate = word(p, 5), word(p, 1), word(p, 6)
    for at in range(groups * task // tasks * LANES, groups * (task + 1) // tasks * LANES, LANES):
        value = load(x, at)
        if approximate:
            bounded = within(value)
            t = tanh(inner(bounded))
            steep = fma(bounded * bounded, spread(3 * CUBED * INNER), spread(INNER))
            slope = 0.5 * (t + 1.0) + 0.5 * bounded * (1.0 - t * t) * steep
        else:
            below = maximum(spread(FAR), 0.0 - maximum(0.0 - value, value))
            density = exp(below * below * -0.5) * (1 / math.sqrt(2 * math.pi))
            slope = 0.5 + copysign(0.5 - lower(below), value) + copysign(below, value) * density
        store(dx, at, load(given, at) * slope)


@inlined
def gelu(x):
    """`x Phi(x)`."""
    below = maximum(spread(FAR), 0.0 - maximum(0.0 - x, x))
    return fma(below, lower(below), maximum(spread(0.0), x))


@inlined
def gelu_tanh(x):
    """The approximation."""
    return x * 0.5 * (tanh(inner(within(x))) + 1.0)


@inlined
def lower(x):
    """Phi(x) for x <= 0, half the complementary error function of -x / sqrt(2)."""
    t = 1.0 / fma(x, spread(-0.3275911 / math.sqrt(2)), spread(1.0))
    power = fma(t, spread(1.061405429), spread(-1.453152027))
    power = fma(t, power, spread(1.421413741))
    power = fma(t, power, spread(-0.284496736))
    power = fma(t, power, spread(0.254829592))
    return 0.5 * t * power * exp(x * x * -0.5)


@inlined
def within(x):
    """`x`, or what is not as far as 64 from 0."""
    return 0.0 - maximum(spread(FAR), 0.0 - maximum(spread(FAR), x))


@inlined
def inner(x):
    """What the tanh is of."""
    return x * fma(x * x, spread(CUBED * INNER), spread(INNER))
