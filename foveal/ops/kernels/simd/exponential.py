"""Exponential functions of vectors, and functions based on them."""

import math
from typing import Any

from llvmlite import ir
from numba.extending import intrinsic

from foveal.ops.kernels.simd.lanes import FLOATS, INTS, LANES, call, compare_select, constant, lanes

# 2^f on [-1/2, 1/2]: 1 + f times an interpolation at Chebyshev points, accurate to 1e-8, exactly 1 at 0.
_POWERS = (
    0.6931471824645996,
    0.24022650718688965,
    0.055503569543361664,
    0.009618083015084267,
    0.0013390863314270973,
    0.00015453163359779865,
)


@intrinsic
def exp2(context: Any, value: Any) -> Any:
    """Return `2^x` to 2 units in the last place; 0 below -126.5, and 2^127 from 127 on."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _power(builder, values[0])

    return lanes(lanes), code


@intrinsic
def exp(context: Any, value: Any) -> Any:
    """Return `e^x`, by `exp2`."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _power(builder, builder.fmul(values[0], constant(1 / math.log(2))))

    return lanes(lanes), code


@intrinsic
def sigmoid(context: Any, value: Any) -> Any:
    """Return `1 / (1 + e^-x)`."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        power = _power(builder, builder.fmul(values[0], constant(-1 / math.log(2))))
        return builder.fdiv(constant(1.0), builder.fadd(constant(1.0), power))

    return lanes(lanes), code


@intrinsic
def tanh(context: Any, value: Any) -> Any:
    """Return `d / (d + 2)` with `d = e^2x - 1`. Near 0, d is not computed as a difference, so tanh x equals x
    there."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        scale, rest = _scale_and_rest(builder, builder.fmul(values[0], constant(2 / math.log(2))))
        d = call(builder, "fma", scale, rest, builder.fsub(scale, constant(1.0)))
        return builder.fdiv(d, builder.fadd(d, constant(2.0)))

    return lanes(lanes), code


def _power(builder: Any, value: Any) -> Any:
    """Return 2^x."""
    scale, rest = _scale_and_rest(builder, value)
    return call(builder, "fma", scale, rest, scale)


def _scale_and_rest(builder: Any, value: Any) -> Any:
    """Return (scale, rest) with `2^x = scale * (1 + rest)`, where scale is a power of 2 with an integer
    exponent."""
    # This order of the comparison keeps a NaN.
    x = compare_select(builder, ">", constant(-127.0), compare_select(builder, "<", constant(127.0), value))
    integer = call(builder, "rint", x)
    fraction = builder.fsub(x, integer)
    power = constant(_POWERS[-1])
    for factor in reversed(_POWERS[:-1]):
        power = call(builder, "fma", power, fraction, constant(factor))
    rest = builder.fmul(power, fraction)
    # The float32 2^integer has integer + 127 in the bits from 23 on. With 0 in them it is 0.
    exponent = builder.add(builder.fptosi(integer, INTS), ir.Constant(INTS, [127] * LANES))
    scale = builder.bitcast(builder.shl(exponent, ir.Constant(INTS, [23] * LANES)), FLOATS)
    return scale, rest
