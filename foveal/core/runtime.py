"""Seeds, devices and numeric precision."""

import ctypes
import hashlib
import random
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import numpy as np
import torch

from foveal.core.allocator import free_memory, machine_memory, process_peak, reset_process_peak
from foveal.core.errors import UserError
from foveal.core.rank import world_size
from foveal.core.rank_device import gpu_of_rank

Precision = Literal["auto", "float32", "bfloat16", "float16"]
DEVICE_TYPES = ("cpu", "cuda", "mps")


def derived_seed(*parts: object) -> int:
    """Return a 63-bit seed that depends on all `parts` and on nothing else."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def seed_everything(*parts: object) -> None:
    """Seed every global random generator from `parts`.

    The trainer calls this before each step with (seed, step). Noise such as dropout's is then a function of
    the step, and there is no generator state to save and restore.
    """
    seed = derived_seed(*parts)
    random.seed(seed)
    np.random.seed(seed % 2**32)
    # torch.manual_seed queries every type of device and is a hundred times as slow.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(seed)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(seed)


def random_state() -> tuple[Any, ...]:
    """Return the state of every global random generator."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    return random.getstate(), np.random.get_state(), torch.default_generator.get_state(), cuda


def restore_random_state(state: tuple[Any, ...]) -> None:
    """Restore what `random_state` returned."""
    python, numpy, cpu, cuda = state
    random.setstate(python)
    np.random.set_state(numpy)
    torch.default_generator.set_state(cpu)
    if cuda:
        torch.cuda.set_rng_state_all(cuda)


def keep_freed_memory() -> None:
    """Make glibc keep freed memory for the next step instead of returning it to the system.

    A training step on a CPU allocates and frees the same large tensors each time. Keeping them makes small
    models a fifth faster. Call this only after the data are prepared. Otherwise memory that is needed only
    once would be kept too. Without glibc, this does nothing.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        trim_threshold, mmap_threshold, never = -1, -3, -1
        mallopt(mmap_threshold, 2**30)
        mallopt(trim_threshold, never)


def release_freed_memory() -> None:
    """Return freed memory to the system, which `keep_freed_memory` has kept. Without glibc, do nothing."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


def physical_memory() -> int:
    """Return the memory of this machine in bytes: that of the GPU if it is larger."""
    memory = machine_memory()
    if torch.cuda.is_available():
        memory = max(memory, torch.cuda.get_device_properties(0).total_memory)
    return memory


def peak_memory() -> int:
    """Return the peak memory of this process in bytes: GPU memory if the process uses a GPU."""
    if torch.cuda.is_available() and torch.cuda.max_memory_reserved():
        return torch.cuda.max_memory_reserved()
    return process_peak()


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """Return a context in which operations on `device` compute in the precision of their inputs. The device
    meta has no other."""
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)


def reset_peak_memory() -> None:
    """Begin a new `peak_memory` with what this process takes now."""
    reset_process_peak()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def free_memory_on(device: torch.device) -> int | None:
    """Return the bytes that this process can still take on `device`; None if unknown.

    Freed memory that a GPU keeps for the next step is free; that of a CPU is after `release_freed_memory`.
    """
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(torch.cuda.mem_get_info(device)[0]) + kept
    return free_memory() if device.type == "cpu" else None


def resolve_device(name: str = "auto") -> torch.device:
    """Return the device called `name`. `auto` is CUDA if available, else the CPU.

    Among ranks, CUDA is the GPU of this rank.

    Raises: UserError: the device is unknown or not available.
    """
    if name in ("auto", "cuda") and world_size() > 1 and torch.cuda.is_available():
        return gpu_of_rank(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"--device {name}: not a device; use cpu, cuda, cuda:0 or mps") from None
    if device.type not in DEVICE_TYPES:
        raise UserError(f"--device {name}: models run on cpu, cuda or mps; use one of them")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UserError(f"--device {name}: this machine's PyTorch sees no Apple GPU; use --device cpu")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"--device {name}: this machine's PyTorch sees no CUDA device; use --device cpu")
    if device.type == "cuda" and world_size() > 1:
        raise UserError(
            f"--device {name}: each rank has a GPU of its own: use cuda; CUDA_VISIBLE_DEVICES chooses GPUs"
        )
    if device.type == "cuda" and (device.index or 0) >= (count := torch.cuda.device_count()):
        raise UserError(f"--device {name}: CUDA devices here are 0 to {count - 1}; use one of them")
    return device


def has_fast_bfloat16(device: torch.device) -> bool:
    """Return whether `device` multiplies bfloat16 in hardware. A CPU without bfloat16 takes several times as
    long."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "mps":
        return False
    # The names on x86 (AVX-512, AMX) and on Arm. The dictionary has only names of this processor family.
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16", "sve_bf16"))


def resolve_precision(
    precision: Precision, device: torch.device
) -> Literal["float32", "bfloat16", "float16"]:
    """Return the precision of training; `auto` is bfloat16 if the hardware of `device` has it, else float32.

    Raises: UserError: float16 on a CPU.
    """
    if precision == "float16" and device.type == "cpu":
        raise UserError(
            "training.precision=float16 is for GPUs; a CPU is slow at it: use auto, bfloat16 or float32"
        )
    if precision != "auto":
        return precision
    return "bfloat16" if has_fast_bfloat16(device) else "float32"


def at_least_float32(x: torch.Tensor) -> torch.Tensor:
    """Convert `x` to float32 if its precision is lower. Sums over a vocabulary need the precision."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """Return a context that runs matrix products in `precision`. Parameters and sums stay in float32.

    On a CPU a run of float16 is used in float32.
    """
    if precision == "float16" and device.type == "cpu":
        return nullcontext()
    resolved = resolve_precision(precision, device)
    if resolved == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.float16 if resolved == "float16" else torch.bfloat16)


def exact_dtype(device: torch.device) -> torch.dtype:
    """Return float64, or float32 on Apple's GPUs, which have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64
