"""The memory that the machine and its container have left."""

from pathlib import Path

ROOT = Path("/")
MEMINFO = "proc/meminfo"
CGROUPS = (
    ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current", "sys/fs/cgroup/memory.stat"),
    (
        "sys/fs/cgroup/memory/memory.limit_in_bytes",
        "sys/fs/cgroup/memory/memory.usage_in_bytes",
        "sys/fs/cgroup/memory/memory.stat",
    ),
)
"""Files with a container's limit, its usage and the statistics of that usage, for cgroups version 2 and 1."""


def free_memory(root: Path = ROOT) -> int | None:
    """Return the bytes that a process can still allocate, within the limits of the machine and of its
    container.

    Return None if neither is known, as on systems other than Linux.
    """
    available = [
        _machine_available(root),
        *(_cgroup_available(*(root / name for name in names)) for names in CGROUPS),
    ]
    return min((size for size in available if size is not None), default=None)


def _machine_available(root: Path) -> int | None:
    """Return the available bytes of the machine, or None if unknown."""
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
    files = int(words[words.index("inactive_file") + 1]) if "inactive_file" in words else 0
    return max(0, int(maximum) - int(used) + files)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
