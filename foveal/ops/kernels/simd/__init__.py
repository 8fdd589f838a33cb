"""The vectors of 16 float32 in which kernels are written.

A compiler turns a loop over single numbers into vector instructions only if it can prove that no two arrays
overlap. With these vectors the compiler has nothing to prove. On processors with narrower registers, a vector
takes several registers.
"""

from foveal.ops.kernels.simd.exponential import exp, exp2, sigmoid, tanh
from foveal.ops.kernels.simd.lanes import (
    LANES,
    always_inline,
    broadcast,
    copysign,
    float_pointer,
    fma,
    int_pointer,
    kernel_function,
    load,
    load_double,
    load_int,
    load_scalar,
    maximum,
    offset,
    prefetch,
    reduce_max,
    reduce_sum,
    store,
    store_scalar,
)
from foveal.ops.kernels.simd.matmul import matmul_8x16, matmul_8x32
from foveal.ops.kernels.simd.noise import dropout_mask
from foveal.ops.kernels.simd.permute import swap_pairs, transpose_8
from foveal.ops.kernels.simd.synchronization import count_done, pause, signal_done

__all__ = [
    "LANES",
    "always_inline",
    "broadcast",
    "copysign",
    "count_done",
    "dropout_mask",
    "exp",
    "exp2",
    "float_pointer",
    "fma",
    "int_pointer",
    "kernel_function",
    "load",
    "load_double",
    "load_int",
    "load_scalar",
    "matmul_8x16",
    "matmul_8x32",
    "maximum",
    "offset",
    "pause",
    "prefetch",
    "reduce_max",
    "reduce_sum",
    "sigmoid",
    "signal_done",
    "store",
    "store_scalar",
    "swap_pairs",
    "tanh",
    "transpose_8",
]
