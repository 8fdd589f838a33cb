"""Compiled kernels: dispatch, compilation, the cache of machine code, and the launch on threads."""
