"""Synchronization of the tasks of one call, by an atomic count of the tasks that are done."""

from typing import Any

from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from foveal.ops.kernels.simd.lanes import WORD

_words = types.CPointer(types.int64)


@intrinsic
def signal_done(context: Any, base: Any, index: Any) -> Any:
    """Increment the count of done tasks in `base[index]`.

    A task that reads the new count also sees everything written before the increment.
    """

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        counter = builder.gep(values[0], [values[1]])
        builder.atomic_rmw("add", counter, ir.Constant(WORD, 1), "release")

    return types.void(_words, types.int64), code


@intrinsic
def count_done(context: Any, base: Any, index: Any) -> Any:
    """Return how many tasks are done."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load_atomic(builder.gep(values[0], [values[1]]), "acquire", 8)

    return types.int64(_words, types.int64), code


@intrinsic
def pause(context: Any) -> Any:
    """Yield the core to its other hardware thread for a moment, on x86."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if binding.get_process_triple().startswith("x86_64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), [])

    return types.void(), code
