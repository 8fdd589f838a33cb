"""CPU kernels without a compiler: what Numba translates at first use, in vectors of `simd`.

A kernel is a function `(task, arguments)` in a module of its own; the operation that calls it, and its
equation, stand in the file of the same name in `foveal.ops`. `ops.jit.code_cache` makes and keeps their code,
`ops.jit.launch` runs them on torch's own threads.
"""
