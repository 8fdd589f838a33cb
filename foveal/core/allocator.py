"""How much memory there is still to be had."""

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
"""Of a container, by cgroups version 2 and 1: its limit, its use, and what that is made of."""


def free_memory(root: Path = ROOT) -> int | None:
    """Bytes that a process may still take, of the machine's and of its container's; None where nothing says
    so, as on other systems than Linux."""
    found = [
        _machine_available(root),
        *(_cgroup_available(*(root / name for name in names)) for names in CGROUPS),
    ]
    return min((left for left in found if left is not None), default=None)


def _machine_available(root: Path) -> int | None:
    words = _read(root / MEMINFO).split()
    return 1024 * int(words[words.index("MemAvailable:") + 1]) if "MemAvailable:" in words else None


def _cgroup_available(limit: Path, use: Path, stat: Path) -> int | None:
    """Files that were read count as use, and make room when it is needed."""
    most, used, words = _read(limit), _read(use), _read(stat).split()
    if not (most.isdecimal() and used.isdecimal()):  # the limit may be "max"
        return None
    files = int(words[words.index("inactive_file") + 1]) if "inactive_file" in words else 0
    return max(0, int(most) - int(used) + files)


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
