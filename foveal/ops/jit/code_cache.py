"""Compilation of a kernel's Python to machine code, once per machine: Numba compiles, LLVM loads.

Only the object code is cached, with its hash, so a damaged file is detected and compiled again. A process
that finds the code in the cache neither imports nor runs Numba's compiler.
"""

import hashlib
import importlib
import inspect
import time
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

from foveal.core.errors import RunFailed
from foveal.core.log import notify
from foveal.store import durable
from foveal.store.cache import cache_folder

KERNEL_FOLDER = Path(__file__).parents[1] / "kernels"
LANES = 16
"""Elements of a kernel's vector."""
ENTRY_POINT = "entry"
_engines: list[Any] = []
"""The engines that keep the loaded code in memory."""
_compile_times: list[float] = []
"""The seconds of every compilation in this process."""


def compile_seconds() -> float:
    """Return the seconds that this process has spent on compiling kernels."""
    return sum(_compile_times, 0.0)


def kernel_address(module: str, kernel: str) -> int:
    """Return the address of `void entry(int64 *arguments)`, which takes tasks until none is left.

    A task is `kernel(task, arguments)` in `foveal.ops.kernels.<module>`. `arguments[0]` counts the tasks
    taken, `arguments[1]` is the number of tasks, and all other arguments are the kernel's own.
    """
    path = kernel_cache() / f"{module}-{kernel}-{_cache_key()[:24]}.o"
    code = _read_cached(path)
    if code is None:
        if not _compile_times:
            notify(
                f"compiling kernels for this processor, first {kernel}: once on this machine, some seconds "
                "each"
            )
        started = time.monotonic()
        code = _compile(importlib.import_module(f"foveal.ops.kernels.{module}"), kernel)
        _compile_times.append(time.monotonic() - started)
        _write_cached(path, code)
    return _load(code)


def kernel_cache() -> Path:
    """Return the folder of the machine code."""
    return cache_folder() / "kernels"


@cache
def _cache_key() -> str:
    """Return a hash of everything that the machine code depends on: the compiler, the processor, and all
    sources, since kernels share parts."""
    import llvmlite.binding as llvm

    sources = (*sorted(KERNEL_FOLDER.rglob("*.py")), Path(__file__))
    facts = [
        *(path.read_bytes() for path in sources),
        *(fact.encode() for fact in (version("numba"), version("llvmlite"), llvm.get_process_triple())),
        *(fact.encode() for fact in (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())),
    ]
    return hashlib.sha256(b"".join(hashlib.sha256(fact).digest() for fact in facts)).hexdigest()


def _read_cached(path: Path) -> bytes | None:
    """Return the code of a cached file, or None if the file is missing or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, code = content[:32], content[32:]
    return code if hashlib.sha256(code).digest() == digest else None


def _write_cached(path: Path, code: bytes) -> None:
    """Write the code to the cache if possible. Otherwise every process compiles for itself."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        durable.atomic_write(path, hashlib.sha256(code).digest() + code)
    except (OSError, RunFailed):
        pass


def _compile(module: ModuleType, kernel: str) -> bytes:
    """Return the object code for this processor."""
    import llvmlite.binding as llvm
    from numba import njit, types

    function: Callable[..., Any] = inspect.unwrap(getattr(module, kernel))
    arguments = (types.int64, types.CPointer(types.int64))
    translated = njit(
        types.void(*arguments), error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
    )(function)
    name = translated.overloads[arguments].fndesc.llvm_func_name
    program = llvm.parse_assembly(translated.inspect_llvm(arguments) + _entry_point_ir(name))
    program.verify()
    return _target_machine().emit_object(program)


def _entry_point_ir(name: str) -> str:
    """Return the LLVM IR of the entry point, which any number of threads may run.

    Each thread takes the next task until none is left.
    """
    return f"""
define void @{ENTRY_POINT}(ptr %arguments) {{
start:
  %result = alloca ptr
  %error = alloca ptr
  %last = getelementptr i64, ptr %arguments, i64 1
  %tasks = load i64, ptr %last
  br label %next
next:
  %task = atomicrmw add ptr %arguments, i64 1 monotonic
  %more = icmp slt i64 %task, %tasks
  br i1 %more, label %work, label %done
work:
  %status = call i32 @"{name}"(ptr %result, ptr %error, i64 %task, ptr %arguments)
  br label %next
done:
  ret void
}}
"""


@cache
def _target_machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="jitdefault",
    )


def _load(code: bytes) -> int:
    """Load object code, and return the address of its entry point."""
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return engine.get_function_address(ENTRY_POINT)
