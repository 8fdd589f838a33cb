"""Vectors of 16 float32 as values that Numba understands, so that a kernel says what is done at once.

A loop over single numbers is made into vector instructions only where the compiler can prove that no two
arrays overlap; here nothing has to be proved. On machines with narrower registers a vector is several.
"""

import inspect
import math
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_jitable, register_model

from foveal.ops.machine_code import LANES

FLOAT, INT, WORD = ir.FloatType(), ir.IntType(32), ir.IntType(64)
FLOATS, INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)


def step(function: Callable[..., Any]) -> Any:
    """A part of a kernel with a name of its own; what tests may wrap around it is taken off."""
    return register_jitable(inspect.unwrap(function))


def inlined(function: Callable[..., Any]) -> Any:
    """A step that is written where it is called, so that its values stay in registers."""
    return register_jitable(inline="always")(inspect.unwrap(function))


class LanesType(types.Type):
    """16 float32."""

    def __init__(self) -> None:
        super().__init__("lanes")


lanes = LanesType()
pointer = types.CPointer(types.float32)


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any):
        super().__init__(manager, kind, FLOATS)


def _constant(value: float) -> ir.Constant:
    return ir.Constant(FLOATS, [float(value)] * LANES)


def _call(builder: Any, name: str, *operands: Any) -> Any:
    """LLVM's own function `name`, of vectors."""
    kind = ir.FunctionType(FLOATS, [FLOATS] * len(operands))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32")
    return builder.call(function, operands)


def _vector_pointer(builder: Any, base: Any, index: Any) -> Any:
    return builder.bitcast(builder.gep(base, [index]), FLOATS.as_pointer())


@intrinsic
def floats(context: Any, address: Any) -> Any:
    """The float32 numbers at an address."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], FLOAT.as_pointer())

    return pointer(types.int64), code


@intrinsic
def words(context: Any, address: Any) -> Any:
    """The int64 numbers at an address."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], ir.IntType(64).as_pointer())

    return types.CPointer(types.int64)(types.int64), code


@intrinsic
def word(context: Any, base: Any, index: Any) -> Any:
    """The integer `base[index]`: a kernel's argument, say."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(builder.gep(values[0], [values[1]]))

    return types.int64(types.CPointer(types.int64), types.int64), code


@intrinsic
def load(context: Any, base: Any, index: Any) -> Any:
    """16 numbers from `base[index]` on."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(_vector_pointer(builder, *values), align=4)

    return lanes(pointer, types.int64), code


@intrinsic
def store(context: Any, base: Any, index: Any, value: Any) -> Any:
    """Write 16 numbers from `base[index]` on."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], _vector_pointer(builder, values[0], values[1]), align=4)

    return types.void(pointer, types.int64, lanes), code


@intrinsic
def get(context: Any, base: Any, index: Any) -> Any:
    """The number `base[index]`."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(builder.gep(values[0], [values[1]]))

    return types.float32(pointer, types.int64), code


@intrinsic
def put(context: Any, base: Any, index: Any, value: Any) -> Any:
    """Write the number `base[index]`."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], builder.gep(values[0], [values[1]]))

    return types.void(pointer, types.int64, types.float32), code


@intrinsic
def spread(context: Any, value: Any) -> Any:
    """16 times the same number."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _spread(builder, context.cast(builder, values[0], value, types.float32))

    return lanes(value), code


def _spread(builder: Any, single: Any) -> Any:
    nothing = ir.Constant(FLOATS, ir.Undefined)
    first = builder.insert_element(nothing, single, ir.Constant(INT, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(INTS, [0] * LANES))


@intrinsic
def fma(context: Any, a: Any, b: Any, c: Any) -> Any:
    """`a * b + c`, rounded once."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _call(builder, "fma", *values)

    return lanes(lanes, lanes, lanes), code


@intrinsic
def maximum(context: Any, a: Any, b: Any) -> Any:
    """The larger ones; where one of two is a NaN, the second."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _either(builder, ">", *values)

    return lanes(lanes, lanes), code


@intrinsic
def kept(context: Any, seed: Any, place: Any, dropped: Any) -> Any:
    """0 with a chance of `dropped / 2^24`, else 1: noise of the seed at 16 places from `place` on.

    The upper bits of a hash of each place: two rounds of lowbias32 (Ellis 2018), each with half of the seed.
    """

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        seed, place, dropped = values
        lower, upper = _integers(builder, seed), _integers(builder, builder.lshr(seed, ir.Constant(WORD, 32)))
        counted = builder.add(_integers(builder, place), ir.Constant(INTS, list(range(LANES))))
        noise = _mixed(builder, builder.xor(_mixed(builder, builder.add(counted, lower)), upper))
        stays = builder.icmp_unsigned(">=", _shifted(builder, noise, 8), _integers(builder, dropped))
        return builder.select(stays, _constant(1.0), _constant(0.0))

    return lanes(types.int64, types.int64, types.int64), code


def _integers(builder: Any, value: Any) -> Any:
    """16 times the lower half of an int64."""
    nothing = ir.Constant(INTS, ir.Undefined)
    first = builder.insert_element(nothing, builder.trunc(value, INT), ir.Constant(INT, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(INTS, [0] * LANES))


def _shifted(builder: Any, value: Any, bits: int) -> Any:
    return builder.lshr(value, ir.Constant(INTS, [bits] * LANES))


def _mixed(builder: Any, value: Any) -> Any:
    for bits, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        value = builder.xor(value, _shifted(builder, value, bits))
        value = builder.mul(value, ir.Constant(INTS, [factor] * LANES))
    return builder.xor(value, _shifted(builder, value, 16))


@intrinsic
def swap(context: Any, value: Any) -> Any:
    """Neighbours change places: the real and the imaginary parts of 8 complex numbers."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        places = ir.Constant(INTS, [place ^ 1 for place in range(LANES)])
        return builder.shuffle_vector(values[0], ir.Constant(FLOATS, ir.Undefined), places)

    return lanes(lanes), code


@intrinsic
def total(context: Any, value: Any) -> Any:
    """The sum of the 16."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(FLOAT, [FLOAT, FLOATS])
        add = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fadd.v{LANES}f32")
        return builder.call(add, [ir.Constant(FLOAT, 0.0), values[0]], fastmath=("reassoc",))

    return types.float32(lanes), code


@intrinsic
def products(
    context: Any, a: Any, row: Any, step: Any, b: Any, panel: Any, c: Any, width: Any, steps: Any, more: Any
) -> Any:
    """`c[i, j] = sum_s a[i, s] b[s, j]` of 8 rows and 32 columns, added to what is there if `more`.

    `a[i, s]` is at `i row + s step`, `b[s, j]` at `s panel + j`, `c[i, j]` at `i width + j`. The sums stay in
    registers: all at once in 16 of the 32 that AVX-512 has; elsewhere those of 4 rows and 16 columns in turn.
    """

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        rows, columns = _sums_at_once()
        for first in range(0, 8, rows):
            for left in range(0, 2, columns):
                places = [(i, j) for i in range(first, first + rows) for j in range(left, left + columns)]
                _summed(builder, places, *values)

    integer = types.int64
    return (
        types.void(pointer, integer, integer, pointer, integer, pointer, integer, integer, integer),
        code,
    )


def _sums_at_once() -> tuple[int, int]:
    """Rows, and vectors of columns: two numbers of vectors share the registers with what is multiplied."""
    return (8, 2) if get_host_cpu_features().get("avx512f") else (4, 1)


def _summed(
    builder: Any,
    places: list[tuple[int, int]],
    a: Any,
    row: Any,
    step: Any,
    b: Any,
    panel: Any,
    c: Any,
    width: Any,
    steps: Any,
    more: Any,
) -> None:
    """`products` of some rows i and vectors j of columns."""

    def word(value: int) -> ir.Constant:
        return ir.Constant(WORD, value)

    at = [
        _vector_pointer(builder, c, builder.add(builder.mul(width, word(i)), word(j * LANES)))
        for i, j in places
    ]
    before = builder.block
    old, loop, done = (builder.append_basic_block(name) for name in ("old", "loop", "done"))
    builder.cbranch(builder.icmp_signed("!=", more, word(0)), old, loop)
    builder.position_at_end(old)
    kept = [builder.load(place, align=4) for place in at]
    builder.branch(loop)
    builder.position_at_end(loop)
    s = builder.phi(WORD)
    sums = [builder.phi(FLOATS) for _ in places]
    for block in (before, old):
        s.add_incoming(word(0), block)
    start, over = builder.mul(s, panel), builder.mul(s, step)
    right = {
        j: builder.load(_vector_pointer(builder, b, builder.add(start, word(j * LANES))), align=4)
        for j in sorted({j for _, j in places})
    }
    left = {
        i: _spread(builder, builder.load(builder.gep(a, [builder.add(over, builder.mul(row, word(i)))])))
        for i in sorted({i for i, _ in places})
    }
    added = [_call(builder, "fma", left[i], right[j], sum) for (i, j), sum in zip(places, sums, strict=True)]
    following = builder.add(s, word(1))
    s.add_incoming(following, builder.block)
    for total, first, new in zip(sums, kept, added, strict=True):
        total.add_incoming(_constant(0.0), before)
        total.add_incoming(first, old)
        total.add_incoming(new, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, steps), loop, done)
    builder.position_at_end(done)
    for place, new in zip(at, added, strict=True):
        builder.store(new, place, align=4)


# 2^f on [-1/2, 1/2]: 1 + f times an interpolation at Chebyshev's points, right to 1e-8 and exactly 1 at 0.
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
    """`2^x` to 2 units in the last place; 0 below -126.5, and 2^127 from 127 on."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _power(builder, values[0])

    return lanes(lanes), code


@intrinsic
def exp(context: Any, value: Any) -> Any:
    """`e^x` by `exp2`."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _power(builder, builder.fmul(values[0], _constant(1 / math.log(2))))

    return lanes(lanes), code


@intrinsic
def sigmoid(context: Any, value: Any) -> Any:
    """`1 / (1 + e^-x)`."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        power = _power(builder, builder.fmul(values[0], _constant(-1 / math.log(2))))
        return builder.fdiv(_constant(1.0), builder.fadd(_constant(1.0), power))

    return lanes(lanes), code


@intrinsic
def tanh(context: Any, value: Any) -> Any:
    """`d / (d + 2)` with `d = e^2x - 1`, which near 0 is not made as a difference: tanh x is x there."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        scale, rest = _scale_and_rest(builder, builder.fmul(values[0], _constant(2 / math.log(2))))
        d = _call(builder, "fma", scale, rest, builder.fsub(scale, _constant(1.0)))
        return builder.fdiv(d, builder.fadd(d, _constant(2.0)))

    return lanes(lanes), code


def _power(builder: Any, value: Any) -> Any:
    scale, rest = _scale_and_rest(builder, value)
    return _call(builder, "fma", scale, rest, scale)


def _scale_and_rest(builder: Any, value: Any) -> Any:
    """`2^x = scale * (1 + rest)`, where the scale is a power of 2 with a whole exponent."""
    # Compared so that a NaN is kept.
    x = _either(builder, ">", _constant(-127.0), _either(builder, "<", _constant(127.0), value))
    whole = _call(builder, "rint", x)
    part = builder.fsub(x, whole)
    power = _constant(_POWERS[-1])
    for factor in reversed(_POWERS[:-1]):
        power = _call(builder, "fma", power, part, _constant(factor))
    rest = builder.fmul(power, part)
    # The number 2^whole has whole + 127 in the bits from 23 on; with 0 there it is 0.
    exponent = builder.add(builder.fptosi(whole, INTS), ir.Constant(INTS, [127] * LANES))
    scale = builder.bitcast(builder.shl(exponent, ir.Constant(INTS, [23] * LANES)), FLOATS)
    return scale, rest


def _either(builder: Any, sign: str, a: Any, b: Any) -> Any:
    """`a` where `a sign b`, else `b`."""
    return builder.select(builder.fcmp_ordered(sign, a, b), a, b)


def _operator(name: str, symbol: Any) -> None:
    @intrinsic
    def both(context: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return getattr(builder, name)(*values)

        return lanes(lanes, lanes), code

    @overload(symbol, inline="always")
    def of_lanes(a, b):  # Numba compares signatures
        if isinstance(a, LanesType) and isinstance(b, LanesType):
            return lambda a, b: both(a, b)
        if isinstance(a, LanesType) and isinstance(b, types.Float):
            return lambda a, b: both(a, spread(b))
        if isinstance(a, types.Float) and isinstance(b, LanesType):
            return lambda a, b: both(spread(a), b)
        return None


for _name, _symbol in (
    ("fadd", operator.add),
    ("fsub", operator.sub),
    ("fmul", operator.mul),
    ("fdiv", operator.truediv),
):
    _operator(_name, _symbol)
