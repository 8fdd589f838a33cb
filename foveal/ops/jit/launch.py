"""The launch of kernels on torch's own threads, so that two thread pools never compete."""

import ctypes
import os
import struct
import sys
import warnings
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.ops.jit.code_cache import LANES, kernel_address

_PLAIN = {Tensor, nn.Parameter}
_shapes_alone: ContextVar[frozenset[type]] = ContextVar("shapes_alone", default=frozenset())
"""Classes of fake tensors, for which kernels are chosen, but compute nothing."""
_is_forked_child = False
"""True in a forked process, which lacks the threads of its parent and uses only one."""


def _mark_forked_child() -> None:
    global _is_forked_child
    _is_forked_child = True


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_mark_forked_child)


@contextmanager
def counted_kernels(tensors: type) -> Iterator[None]:
    """Return a context in which the kernels take tensors of a class that has shapes but no numbers, and
    compute nothing. Their buffers can then be counted."""
    token = _shapes_alone.set(frozenset([tensors]))
    try:
        yield
    finally:
        _shapes_alone.reset(token)


class Kernel:
    """A kernel, named by its module and function. It is compiled or loaded at its first use."""

    def __init__(self, module: str, name: str):
        self.module, self.name = module, name
        self._address = -1  # not looked up yet

    def usable(self, *tensors: Tensor) -> bool:
        """Return whether the kernel can compute with these tensors: float32 on a CPU, and not under
        torch.compile."""
        # A kernel reads memory: the tensors of other classes, such as parts of a whole, have another layout.
        classes = _PLAIN | _shapes_alone.get()
        fits = all(x.dtype == torch.float32 and x.is_cpu and type(x) in classes for x in tensors)
        return fits and not torch.compiler.is_compiling() and self._ready()

    def __call__(self, tasks: int, *arguments: int | float | Tensor | None) -> None:
        """Run every task in 0 .. tasks - 1, on as many threads as torch uses.

        A tensor is passed as the address of its elements. The tensor must be contiguous, and must outlive the
        call. None is passed as address 0, and a float as its bits.
        """
        without_numbers = _shapes_alone.get()
        if without_numbers and any(type(argument) in without_numbers for argument in arguments):
            return
        packed = array("q", [0, tasks, *pack_arguments(arguments)])
        address, _ = packed.buffer_info()
        threads = 1 if _is_forked_child else min(tasks, torch.get_num_threads())
        run_parallel = _openmp_parallel() if threads > 1 else None
        if run_parallel is None:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._address)(address)
        else:
            run_parallel(self._address, address, threads, 0)

    def _ready(self) -> bool:
        if self._address < 0:
            self._address = _address(self.module, self.name)
        return self._address != 0


def pack_arguments(arguments: Iterable[int | float | Tensor | None]) -> list[int]:
    """Return the arguments as integers for the kernel."""
    return [
        argument.data_ptr()
        if isinstance(argument, Tensor)
        else int.from_bytes(struct.pack("=d", argument), sys.byteorder, signed=True)
        if isinstance(argument, float)
        else argument or 0
        for argument in arguments
    ]


def pad_to_lanes(x: Shaped[Tensor, "... D"]) -> Shaped[Tensor, "... E"]:
    """Return `x`, contiguous, with its last axis zero-padded to a multiple of the kernels' vector length."""
    missing = -x.shape[-1] % LANES
    return F.pad(x, (0, missing)) if missing else x.contiguous()


def channel_tasks(rows: int, width: int) -> int:
    """Return the number of tasks into which the `width` channels of a row are split, so that every thread has
    work."""
    return min(width // LANES, -(-torch.get_num_threads() // rows))


def why_no_kernels() -> str:
    """Return why no kernel is used on this machine. Empty if kernels are used."""
    if os.environ.get("FOVEAL_KERNELS") == "off":
        return "FOVEAL_KERNELS=off"
    return "Numba is not installed" if find_spec("numba") is None else ""


@cache
def _address(module: str, name: str) -> int:
    """Return the address of the kernel's code, or 0 if it is not available.

    If Numba is installed, a failure is reported once.
    """
    if why_no_kernels():
        return 0
    try:
        return kernel_address(module, name)
    except Exception as error:
        warnings.warn(
            f"no kernel for {module}.{name} on this machine ({type(error).__name__}: {error}): the slower "
            "path computes the same; FOVEAL_KERNELS=off silences this",
            RuntimeWarning,
            stacklevel=4,
        )
        return 0


@cache
def _openmp_parallel() -> Callable[..., None] | None:
    """Return `GOMP_parallel` of the OpenMP library that torch uses, which runs a function on every thread at
    once."""
    try:
        maps = Path("/proc/self/maps").read_text("utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    loaded = {line.split(maxsplit=5)[-1] for line in maps if "libgomp" in line or "libiomp5" in line}
    torch_libraries = [path for path in loaded if Path(torch.__file__).parent in Path(path).parents]
    for path in torch_libraries or sorted(loaded):
        try:
            run = ctypes.CDLL(path).GOMP_parallel
        except (OSError, AttributeError):
            continue
        run.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        run.restype = None
        return run
    return None
