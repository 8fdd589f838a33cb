"""A piece of a product of matrices whose sums stay in registers."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.extending import intrinsic

from foveal.ops.kernels.simd.lanes import (
    FLOATS,
    LANES,
    WORD,
    broadcast_ir,
    call,
    constant,
    pointer,
    vector_pointer,
)


@intrinsic
def matmul_8x32(
    context: Any, a: Any, row: Any, step: Any, b: Any, panel: Any, c: Any, width: Any, steps: Any, more: Any
) -> Any:
    """`c[i, j] = sum_s a[i, s] b[s, j]` of 8 rows and 32 columns, added to what is there if `more`.

    `a[i, s]` is at `i row + s step`, `b[s, j]` at `s panel + j`, `c[i, j]` at `i width + j`. The sums stay in
    registers: all at once in 16 of the 32 that AVX-512 has; elsewhere those of 4 rows and 16 columns in turn.
    """
    return SIGNATURE, _matmul(2)


@intrinsic
def matmul_8x16(
    context: Any, a: Any, row: Any, step: Any, b: Any, panel: Any, c: Any, width: Any, steps: Any, more: Any
) -> Any:
    """`matmul_8x32` of 16 columns."""
    return SIGNATURE, _matmul(1)


INTEGER = types.int64
SIGNATURE = types.void(pointer, INTEGER, INTEGER, pointer, INTEGER, pointer, INTEGER, INTEGER, INTEGER)


def _matmul(vectors: int) -> Callable[..., None]:
    """The code for 8 rows and so many vectors of columns."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        rows, columns = _sums_at_once()
        columns = min(columns, vectors)
        for first in range(0, 8, rows):
            for left in range(0, vectors, columns):
                places = [(i, j) for i in range(first, first + rows) for j in range(left, left + columns)]
                _accumulate(builder, places, *values)

    return code


def _sums_at_once() -> tuple[int, int]:
    """Rows, and vectors of columns: two numbers of vectors share the registers with what is multiplied."""
    return (8, 2) if get_host_cpu_features().get("avx512f") else (4, 1)


def _accumulate(
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
    """`matmul_8x32` of some rows i and vectors j of columns."""

    def word(value: int) -> ir.Constant:
        return ir.Constant(WORD, value)

    at = [
        vector_pointer(builder, c, builder.add(builder.mul(width, word(i)), word(j * LANES)))
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
        j: builder.load(vector_pointer(builder, b, builder.add(start, word(j * LANES))), align=4)
        for j in sorted({j for _, j in places})
    }
    left = {
        i: broadcast_ir(builder, builder.load(builder.gep(a, [builder.add(over, builder.mul(row, word(i)))])))
        for i in sorted({i for i, _ in places})
    }
    added = [call(builder, "fma", left[i], right[j], sum) for (i, j), sum in zip(places, sums, strict=True)]
    following = builder.add(s, word(1))
    s.add_incoming(following, builder.block)
    for total, first, new in zip(sums, kept, added, strict=True):
        total.add_incoming(constant(0.0), before)
        total.add_incoming(first, old)
        total.add_incoming(new, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, steps), loop, done)
    builder.position_at_end(done)
    for place, new in zip(at, added, strict=True):
        builder.store(new, place, align=4)
