"""Blocks of a matrix product whose sums stay in registers."""

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
    """Compute `c[i, j] = sum_s a[i, s] b[s, j]` for 8 rows and 32 columns, added to the present c if `more`.

    `a[i, s]` is at `i row + s step`, `b[s, j]` at `s panel + j`, `c[i, j]` at `i width + j`. The sums stay in
    registers: with AVX-512 all sums at once in 16 of the 32 registers, otherwise those of 4 rows and 16
    columns in turn.
    """
    return SIGNATURE, _matmul(2)


@intrinsic
def matmul_8x16(
    context: Any, a: Any, row: Any, step: Any, b: Any, panel: Any, c: Any, width: Any, steps: Any, more: Any
) -> Any:
    """Compute `matmul_8x32` for 16 columns."""
    return SIGNATURE, _matmul(1)


INTEGER = types.int64
SIGNATURE = types.void(pointer, INTEGER, INTEGER, pointer, INTEGER, pointer, INTEGER, INTEGER, INTEGER)


def _matmul(vectors: int) -> Callable[..., None]:
    """Return the code generator for 8 rows and `vectors` vectors of columns."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        rows, columns = _sums_at_once()
        columns = min(columns, vectors)
        for first in range(0, 8, rows):
            for left in range(0, vectors, columns):
                cells = [(i, j) for i in range(first, first + rows) for j in range(left, left + columns)]
                _accumulate(builder, cells, *values)

    return code


def _sums_at_once() -> tuple[int, int]:
    """Return the numbers of rows and of column vectors whose sums fit in the registers together with the
    factors."""
    return (8, 2) if get_host_cpu_features().get("avx512f") else (4, 1)


def _accumulate(
    builder: Any,
    cells: list[tuple[int, int]],
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
    """Generate `matmul_8x32` for some rows i and vectors j of columns."""

    def word(value: int) -> ir.Constant:
        return ir.Constant(WORD, value)

    pointers = [
        vector_pointer(builder, c, builder.add(builder.mul(width, word(i)), word(j * LANES)))
        for i, j in cells
    ]
    before = builder.block
    load_old, loop, done = (builder.append_basic_block(name) for name in ("old", "loop", "done"))
    builder.cbranch(builder.icmp_signed("!=", more, word(0)), load_old, loop)
    builder.position_at_end(load_old)
    initial = [builder.load(pointer, align=4) for pointer in pointers]
    builder.branch(loop)
    builder.position_at_end(loop)
    s = builder.phi(WORD)
    sums = [builder.phi(FLOATS) for _ in cells]
    for block in (before, load_old):
        s.add_incoming(word(0), block)
    b_offset, a_offset = builder.mul(s, panel), builder.mul(s, step)
    right = {
        j: builder.load(vector_pointer(builder, b, builder.add(b_offset, word(j * LANES))), align=4)
        for j in sorted({j for _, j in cells})
    }
    left = {
        i: broadcast_ir(
            builder, builder.load(builder.gep(a, [builder.add(a_offset, builder.mul(row, word(i)))]))
        )
        for i in sorted({i for i, _ in cells})
    }
    added = [call(builder, "fma", left[i], right[j], sum) for (i, j), sum in zip(cells, sums, strict=True)]
    next_s = builder.add(s, word(1))
    s.add_incoming(next_s, builder.block)
    for total, first, new in zip(sums, initial, added, strict=True):
        total.add_incoming(constant(0.0), before)
        total.add_incoming(first, load_old)
        total.add_incoming(new, builder.block)
    builder.cbranch(builder.icmp_signed("<", next_s, steps), loop, done)
    builder.position_at_end(done)
    for address, new in zip(pointers, added, strict=True):
        builder.store(new, address, align=4)
