"""Vectors of 16 float32 as values that Numba understands: read, written, added, multiplied, compared."""

import inspect
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
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


def constant(value: float) -> ir.Constant:
    """16 times a number that is known beforehand."""
    return ir.Constant(FLOATS, [float(value)] * LANES)


def call(builder: Any, name: str, *operands: Any) -> Any:
    """LLVM's own function `name`, of vectors."""
    kind = ir.FunctionType(FLOATS, [FLOATS] * len(operands))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32")
    return builder.call(function, operands)


def vector_pointer(builder: Any, base: Any, index: Any) -> Any:
    """Where the 16 numbers from `base[index]` on are."""
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
        return builder.load(vector_pointer(builder, *values), align=4)

    return lanes(pointer, types.int64), code


@intrinsic
def store(context: Any, base: Any, index: Any, value: Any) -> Any:
    """Write 16 numbers from `base[index]` on."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], vector_pointer(builder, values[0], values[1]), align=4)

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
        return spread_one(builder, context.cast(builder, values[0], value, types.float32))

    return lanes(value), code


def spread_one(builder: Any, single: Any) -> Any:
    """16 times a number of LLVM's: a float32 or an int32."""
    nothing = ir.Constant(ir.VectorType(single.type, LANES), ir.Undefined)
    first = builder.insert_element(nothing, single, ir.Constant(INT, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(INTS, [0] * LANES))


@intrinsic
def fma(context: Any, a: Any, b: Any, c: Any) -> Any:
    """`a * b + c`, rounded once."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return call(builder, "fma", *values)

    return lanes(lanes, lanes, lanes), code


@intrinsic
def maximum(context: Any, a: Any, b: Any) -> Any:
    """The larger ones; where one of two is a NaN, the second."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return either(builder, ">", *values)

    return lanes(lanes, lanes), code


@intrinsic
def copysign(context: Any, size: Any, sign: Any) -> Any:
    """The sizes of the first, with the signs of the second."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return call(builder, "copysign", *values)

    return lanes(lanes, lanes), code


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


def either(builder: Any, sign: str, a: Any, b: Any) -> Any:
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
