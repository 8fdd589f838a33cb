"""`foveal version`: what a report of an error has to say about the machine."""

import platform
from collections.abc import Iterator
from importlib import metadata
from typing import Annotated, Any

import torch
from cyclopts import Parameter

import foveal
from foveal.core.allocator import machine_memory
from foveal.core.extras import EXTRAS, project_name
from foveal.core.runtime import has_fast_bfloat16, resolve_device
from foveal.ops.jit.code_cache import kernel_cache
from foveal.ops.jit.launch import why_no_kernels
from foveal.ui.console import STDOUT, print_facts, print_json


def version(*, json: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Print the versions of Foveal and torch, the device that `auto` takes, the kernels and the extras.

    Parameters
    ----------
    json
        Print one JSON object on standard output.
    """
    device, kernels, extras = _device(), _kernels(), {name: _version(project_name(name)) for name in EXTRAS}
    facts = {"foveal": foveal.__version__, "python": platform.python_version(), "system": platform.platform()}
    facts |= {"torch": torch.__version__}
    if json:
        print_json({**facts, "device": device, "kernels": kernels, "extras": extras})
        return
    fast = ", bfloat16 in hardware" if device["bfloat16"] else ""
    memory = f"{device['memory_bytes'] / 1e9:.1f} GB"
    rows = {
        **facts,
        "device": f"{device['type']}: {device['name']}, {memory}, {device['threads']} threads{fast}",
        "kernels": _kernels_in_words(kernels),
        "extras": ", ".join(_extras_in_words(extras)),
    }
    print_facts([*rows.items()], STDOUT)


def _device() -> dict[str, Any]:
    """Return facts about the device that `--device auto` takes."""
    device = resolve_device()
    name, memory = platform.processor() or platform.machine(), machine_memory()
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        name, memory = properties.name, properties.total_memory
    elif "cpu_name" in (capabilities := torch.cpu.get_capabilities()):
        name = capabilities["cpu_name"]
    facts = {"type": device.type, "name": name, "memory_bytes": memory, "threads": torch.get_num_threads()}
    return facts | {"bfloat16": has_fast_bfloat16(device)}


def _kernels() -> dict[str, Any]:
    """Return the state of the kernels: why they are off, the compiler's versions, and the cache."""
    facts = {"off": why_no_kernels() or None, "cache": str(kernel_cache())}
    return facts | {name: _version(name) for name in ("numba", "llvmlite")}


def _kernels_in_words(kernels: dict[str, Any]) -> str:
    if kernels["off"]:
        return f"off: {kernels['off']}"
    return f"on: Numba {kernels['numba']}, llvmlite {kernels['llvmlite']}; machine code in {kernels['cache']}"


def _extras_in_words(versions: dict[str, str | None]) -> Iterator[str]:
    """Yield each extra with the versions of its packages."""
    for extra in dict.fromkeys(EXTRAS.values()):
        numbers = {name: number or "missing" for name, number in versions.items() if EXTRAS[name] == extra}
        packages = ", ".join(f"{project_name(name)} {number}" for name, number in numbers.items())
        yield f"{extra} ({packages})" if len(numbers) > 1 else f"{extra} {numbers.popitem()[1]}"


def _version(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
