"""Permutations of the elements of vectors, and transposes of small matrices."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from foveal.ops.jit.code_cache import LANES
from foveal.ops.kernels.simd.lanes import FLOAT, FLOATS, INT, INTS, WORD, lanes, pointer


@intrinsic
def swap_pairs(context: Any, value: Any) -> Any:
    """Swap neighbors: the real and the imaginary parts of 8 complex numbers."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        indices = ir.Constant(INTS, [index ^ 1 for index in range(LANES)])
        return builder.shuffle_vector(values[0], ir.Constant(FLOATS, ir.Undefined), indices)

    return lanes(lanes), code


@intrinsic
def transpose_8(context: Any, x: Any, stride: Any, y: Any, width: Any) -> Any:
    """Compute `y[j, i] = x[i, j]` for 8 x 8 numbers. Rows of x are `stride` numbers apart, rows of
    y `width`."""
    half = ir.VectorType(FLOAT, 8)

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        x, stride, y, width = values

        def row(base: Any, stride: Any, i: int) -> Any:
            start = builder.gep(base, [builder.mul(stride, ir.Constant(WORD, i))])
            return builder.bitcast(start, half.as_pointer())

        def shuffled(a: Any, b: Any, indices: tuple[int, ...]) -> Any:
            return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT, 8), indices))

        rows = [builder.load(row(x, stride, i), align=4) for i in range(8)]
        # Interleave pairs of rows, then fours, then eights, within the halves of a register.
        pairs = [
            shuffled(rows[i], rows[i + 1], indices)
            for i in range(0, 8, 2)
            for indices in ((0, 8, 1, 9, 4, 12, 5, 13), (2, 10, 3, 11, 6, 14, 7, 15))
        ]
        fours = [
            shuffled(pairs[i + j], pairs[i + j + 2], indices)
            for i in (0, 4)
            for j in range(2)
            for indices in ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15))
        ]
        for j in range(8):
            indices = (0, 1, 2, 3, 8, 9, 10, 11) if j < 4 else (4, 5, 6, 7, 12, 13, 14, 15)
            builder.store(shuffled(fours[j % 4], fours[4 + j % 4], indices), row(y, width, j), align=4)

    return types.void(pointer, types.int64, pointer, types.int64), code
