"""Vectors of 16 float32 as Numba values, with loads, stores, arithmetic and comparisons."""

import inspect
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_jitable, register_model

from foveal.ops.jit.code_cache import LANES

FLOAT, INT, WORD = ir.FloatType(), ir.IntType(32), ir.IntType(64)
FLOATS, INTS = ir.VectorType(FLOAT, LANES), ir.VectorType(INT, LANES)


def kernel_function(function: Callable[..., Any]) -> Any:
    """Let kernels call a function, compiled on its own. Wrappers that tests put around the function are
    removed."""
    return register_jitable(inspect.unwrap(function))


def always_inline(function: Callable[..., Any]) -> Any:
    """Let kernels call a function, inlined at each call, so that its values stay in registers."""
    return register_jitable(inline="always")(inspect.unwrap(function))


class LanesType(types.Type):
    """The type of 16 float32."""

    def __init__(self) -> None:
        super().__init__("lanes")


lanes = LanesType()
pointer = types.CPointer(types.float32)


@register_model(LanesType)
class LanesModel(models.PrimitiveModel):
    """The LLVM representation of `LanesType`."""

    def __init__(self, manager: Any, kind: Any):
        super().__init__(manager, kind, FLOATS)


def constant(value: float) -> ir.Constant:
    """Return a vector of 16 equal constants."""
    return ir.Constant(FLOATS, [float(value)] * LANES)


def call(builder: Any, name: str, *operands: Any) -> Any:
    """Call LLVM's intrinsic function `name` on vectors."""
    kind = ir.FunctionType(FLOATS, [FLOATS] * len(operands))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32")
    return builder.call(function, operands)


def vector_pointer(builder: Any, base: Any, index: Any) -> Any:
    """Return a pointer to the 16 numbers from `base[index]` on."""
    return builder.bitcast(builder.gep(base, [index]), FLOATS.as_pointer())


@intrinsic
def float_pointer(context: Any, address: Any) -> Any:
    """Return a pointer to the float32 numbers at an address."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], FLOAT.as_pointer())

    return pointer(types.int64), code


@intrinsic
def int_pointer(context: Any, address: Any) -> Any:
    """Return a pointer to the int64 numbers at an address."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], ir.IntType(64).as_pointer())

    return types.CPointer(types.int64)(types.int64), code


@intrinsic
def load_int(context: Any, base: Any, index: Any) -> Any:
    """Load the integer `base[index]`, for instance a kernel's argument."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(builder.gep(values[0], [values[1]]))

    return types.int64(types.CPointer(types.int64), types.int64), code


@intrinsic
def load_double(context: Any, base: Any, index: Any) -> Any:
    """Load the float64 `base[index]`, a kernel's floating-point argument."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        position = builder.gep(values[0], [values[1]])
        return builder.load(builder.bitcast(position, ir.DoubleType().as_pointer()))

    return types.float64(types.CPointer(types.int64), types.int64), code


@intrinsic
def prefetch(context: Any, base: Any, index: Any) -> Any:
    """Prefetch `base[index]` into the cache, for a read or write soon after. Any address is allowed."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        position = builder.bitcast(builder.gep(values[0], [values[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), INT, INT, INT])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [position, INT(0), INT(3), INT(1)])
        return context.get_dummy_value()

    return types.void(pointer, types.int64), code


@intrinsic
def offset(context: Any, base: Any, index: Any) -> Any:
    """Return a pointer to the numbers from `base[index]` on."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.gep(values[0], [values[1]])

    return pointer(pointer, types.int64), code


@intrinsic
def load(context: Any, base: Any, index: Any) -> Any:
    """Load 16 numbers from `base[index]` on."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(vector_pointer(builder, *values), align=4)

    return lanes(pointer, types.int64), code


@intrinsic
def store(context: Any, base: Any, index: Any, value: Any) -> Any:
    """Store 16 numbers from `base[index]` on."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], vector_pointer(builder, values[0], values[1]), align=4)

    return types.void(pointer, types.int64, lanes), code


@intrinsic
def load_scalar(context: Any, base: Any, index: Any) -> Any:
    """Load the number `base[index]`."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(builder.gep(values[0], [values[1]]))

    return types.float32(pointer, types.int64), code


@intrinsic
def store_scalar(context: Any, base: Any, index: Any, value: Any) -> Any:
    """Store the number `base[index]`."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[2], builder.gep(values[0], [values[1]]))

    return types.void(pointer, types.int64, types.float32), code


@intrinsic
def broadcast(context: Any, value: Any) -> Any:
    """Return a vector of 16 equal numbers."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return broadcast_ir(builder, context.cast(builder, values[0], value, types.float32))

    return lanes(value), code


def broadcast_ir(builder: Any, single: Any) -> Any:
    """Return a vector of 16 equal LLVM numbers, float32 or int32."""
    undefined = ir.Constant(ir.VectorType(single.type, LANES), ir.Undefined)
    first = builder.insert_element(undefined, single, ir.Constant(INT, 0))
    return builder.shuffle_vector(first, undefined, ir.Constant(INTS, [0] * LANES))


@intrinsic
def fma(context: Any, a: Any, b: Any, c: Any) -> Any:
    """Return `a * b + c`, rounded once."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return call(builder, "fma", *values)

    return lanes(lanes, lanes, lanes), code


@intrinsic
def maximum(context: Any, a: Any, b: Any) -> Any:
    """Return the larger element of each pair. If one of them is NaN, return the second."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return compare_select(builder, ">", *values)

    return lanes(lanes, lanes), code


@intrinsic
def copysign(context: Any, magnitude: Any, sign: Any) -> Any:
    """Return the magnitudes of the first vector with the signs of the second."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return call(builder, "copysign", *values)

    return lanes(lanes, lanes), code


@intrinsic
def reduce_sum(context: Any, value: Any) -> Any:
    """Return the sum of the 16 elements."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(FLOAT, [FLOAT, FLOATS])
        add = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fadd.v{LANES}f32")
        return builder.call(add, [ir.Constant(FLOAT, 0.0), values[0]], fastmath=("reassoc",))

    return types.float32(lanes), code


@intrinsic
def reduce_max(context: Any, value: Any) -> Any:
    """Return the largest of the 16 elements, ignoring NaN."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(FLOAT, [FLOATS])
        name = f"llvm.vector.reduce.fmax.v{LANES}f32"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)

    return types.float32(lanes), code


def compare_select(builder: Any, sign: str, a: Any, b: Any) -> Any:
    """Return `a` where the comparison `a sign b` is true, else `b`."""
    return builder.select(builder.fcmp_ordered(sign, a, b), a, b)


def _operator(name: str, symbol: Any) -> None:
    """Define a Python operator on vectors, and on a vector and a number."""

    @intrinsic
    def on_vectors(context: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return getattr(builder, name)(*values)

        return lanes(lanes, lanes), code

    @overload(symbol, inline="always")
    def of_lanes(a, b):  # Numba compares signatures
        if isinstance(a, LanesType) and isinstance(b, LanesType):
            return lambda a, b: on_vectors(a, b)
        if isinstance(a, LanesType) and isinstance(b, types.Float):
            return lambda a, b: on_vectors(a, broadcast(b))
        if isinstance(a, types.Float) and isinstance(b, LanesType):
            return lambda a, b: on_vectors(broadcast(a), b)
        return None


for _name, _symbol in (
    ("fadd", operator.add),
    ("fsub", operator.sub),
    ("fmul", operator.mul),
    ("fdiv", operator.truediv),
):
    _operator(_name, _symbol)
