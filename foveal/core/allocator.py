"""The memory of the machine, its container and this process: Linux's own files, elsewhere psutil."""

import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path("/")
MEMINFO = "proc/meminfo"
STATUS = "proc/self/status"
CLEAR_REFS = "proc/self/clear_refs"
CGROUPS = (
    ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current", "sys/fs/cgroup/memory.stat"),
    (
        "sys/fs/cgroup/memory/memory.limit_in_bytes",
        "sys/fs/cgroup/memory/memory.usage_in_bytes",
        "sys/fs/cgroup/memory/memory.stat",
    ),
)
"""Files with a container's limit, its usage and the statistics of that usage, for cgroups version 2 and 1."""


FILE_PAGES = ("inactive_file", "active_file")
"""The statistics of the page cache of files."""


def free_memory(root: Path = ROOT) -> int | None:
    """Return the bytes that a process can still allocate, within the limits of the machine and of its
    container.

    Return None if neither is known.
    """
    available = [
        _machine_available(root),
        *(_cgroup_available(*(root / name for name in names)) for names in CGROUPS),
    ]
    return min((size for size in available if size is not None), default=None)


def machine_memory(root: Path = ROOT) -> int:
    """Return the bytes of memory of this machine."""
    words = _read(root / MEMINFO).split()
    if "MemTotal:" in words:
        return 1024 * int(words[words.index("MemTotal:") + 1])
    import psutil

    return int(psutil.virtual_memory().total)


def resident_memory(root: Path = ROOT) -> int:
    """Return the bytes of memory that this process takes now."""
    resident = _process_status(root, "VmRSS:")
    if resident is not None:
        return resident
    import psutil

    return int(psutil.Process().memory_info().rss)


def process_peak(root: Path = ROOT) -> int:
    """Return the most bytes of memory that this process has taken so far."""
    peak = _process_status(root, "VmHWM:")
    if peak is not None:
        return peak
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def reset_process_peak(root: Path = ROOT) -> None:
    """Begin a new `process_peak` with what this process takes now. Without Linux, do nothing."""
    with suppress(OSError):
        (root / CLEAR_REFS).write_text("5")


def _process_status(root: Path, name: str) -> int | None:
    """Return a number of bytes from Linux's status of this process, or None if it is unknown."""
    words = _read(root / STATUS).split()
    return 1024 * int(words[words.index(name) + 1]) if name in words else None


def _machine_available(root: Path) -> int | None:
    """Return the available bytes of the machine, or None if unknown."""
    if root == ROOT and not (root / MEMINFO).exists():  # a system other than Linux
        import psutil

        return int(psutil.virtual_memory().available)
    words = _read(root / MEMINFO).split()
    return 1024 * int(words[words.index("MemAvailable:") + 1]) if "MemAvailable:" in words else None


def _cgroup_available(limit: Path, use: Path, stat: Path) -> int | None:
    """Return the available bytes of a container, or None if it has no limit.

    The page cache of files counts as usage, but the kernel frees the cache when memory is needed, so its size
    is added back.
    """
    maximum, used, words = _read(limit), _read(use), _read(stat).split()
    if not (maximum.isdecimal() and used.isdecimal()):  # the limit may be "max"
        return None
    sizes = {name: int(size) for name, size in zip(words[::2], words[1::2], strict=False)}
    # Version 1 counts the groups below as usage, and their files in totals of their own.
    files = sum(sizes.get(f"total_{name}", sizes.get(name, 0)) for name in FILE_PAGES)
    return max(0, int(maximum) - int(used) + files)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace").strip()
    except OSError:
        return ""
