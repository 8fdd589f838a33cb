"""CPU kernels that need no C compiler: Numba compiles them at first use. Their vectors are those of `simd`.

A kernel is a function `(task, arguments)` in a module of its own. The operation that calls the kernel, and
its equation, are in the file of the same name in `foveal.ops`. `ops.jit.code_cache` compiles and caches the
code, and `ops.jit.launch` runs it on torch's own threads.
"""
