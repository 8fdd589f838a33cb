"""What a kernel is written in: vectors of 16 float32, so that it says what is done at once.

A loop over single numbers is made into vector instructions only where the compiler can prove that no two
arrays overlap; here nothing has to be proved. On machines with narrower registers a vector is several.
"""

from foveal.ops.kernels.simd.exponential import exp, exp2, sigmoid, tanh
from foveal.ops.kernels.simd.lanes import (
    LANES,
    ahead,
    copysign,
    fetch,
    floats,
    fma,
    get,
    inlined,
    largest,
    load,
    maximum,
    number,
    put,
    spread,
    step,
    store,
    swap,
    total,
    transpose_8,
    word,
    words,
)
from foveal.ops.kernels.simd.matmul import narrow_products, products
from foveal.ops.kernels.simd.noise import kept
from foveal.ops.kernels.simd.synchronization import finish, finished, pause

__all__ = [
    "LANES",
    "ahead",
    "copysign",
    "exp",
    "exp2",
    "fetch",
    "finish",
    "finished",
    "floats",
    "fma",
    "get",
    "inlined",
    "kept",
    "largest",
    "load",
    "maximum",
    "narrow_products",
    "number",
    "pause",
    "products",
    "put",
    "sigmoid",
    "spread",
    "step",
    "store",
    "swap",
    "tanh",
    "total",
    "transpose_8",
    "word",
    "words",
]
