"""A small model of a disk: it records the operations of a program, and computes what a crash may leave.

After a crash, a file has what was written before its last fsync, and a folder has the names before its last
fsync. Later writes may have reached the disk in any order. `MODES` are the extreme cases.
"""

import errno
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from foveal.store import checkpoint, durable, metrics_log

MODES = ("all", "synced", "names first", "outer names first", "removals first")
"""Everything got through; only what was fsynced; all names but no content that was not fsynced; the same,
but new folders have only the names that were fsynced; all removals but no names that were not fsynced.
Besides, after each write: everything, but only half of it."""
Op = tuple[Any, ...]


class Recorder:
    """Replaces `os` and `shutil` in the modules that save. Records every operation on the disk.

    Operation number `fail_at` fails with "no space left on device".
    """

    def __init__(self, fail_at: int | None = None):
        self.ops: list[Op] = []
        self.count, self.fail_at = 0, fail_at
        self._paths: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _note(self, *op: Any, can_fail: bool = True) -> None:
        if can_fail:
            self.count += 1
            if self.fail_at is not None and self.count >= self.fail_at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.ops.append(op)

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_CREAT:
            self._note("create", str(path))
        descriptor = os.open(path, flags, mode)
        self._paths[descriptor] = str(path)
        return descriptor

    def write(self, descriptor: int, content: bytes) -> int:
        self._note("write", self._paths[descriptor], bytes(content))
        return os.write(descriptor, content)

    def fsync(self, descriptor: int) -> None:
        self._note("fsync", self._paths[descriptor])
        os.fsync(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        self._note("rename", str(source), str(target))
        os.rename(source, target)

    replace = rename

    def makedirs(self, path: Path, exist_ok: bool = False) -> None:
        if not (exist_ok and path.is_dir()):
            self._note("mkdir", str(path))
        os.makedirs(path, exist_ok=exist_ok)

    def unlink(self, path: Path) -> None:
        self._note("unlink", str(path), can_fail=False)
        os.unlink(path)

    def rmtree(self, path: Path, ignore_errors: bool = False) -> None:
        """Removing must work on a full disk."""
        for folder, _, files in os.walk(path, topdown=False):
            for name in files:
                self._note("unlink", f"{folder}/{name}", can_fail=False)
                os.unlink(f"{folder}/{name}")
            self._note("unlink", folder, can_fail=False)
            os.rmdir(folder)

    def disk_usage(self, path: Path) -> Any:
        return shutil.disk_usage(path)


def record_disk_operations(monkeypatch: pytest.MonkeyPatch, fail_at: int | None = None) -> Recorder:
    recorder = Recorder(fail_at)
    for module in (durable, metrics_log):
        monkeypatch.setattr(module, "os", recorder)
    for module in (durable, checkpoint):
        monkeypatch.setattr(module, "shutil", recorder)
    return recorder


@dataclass
class Node:
    """A file (`content`) or a folder (`names`): its current state, and the state that is certainly on the
    disk."""

    folder: bool
    new: bool = False
    content: bytes = b""
    synced: bytes = b""
    names: dict[str, "Node"] = field(default_factory=dict)
    synced_names: dict[str, "Node"] = field(default_factory=dict)

    def fsync(self) -> None:
        self.synced, self.synced_names = self.content, dict(self.names)


def load(path: Path) -> Node:
    """Return the content of a folder before recording, all of it durable."""
    node = Node(path.is_dir(), content=b"" if path.is_dir() else path.read_bytes())
    if node.folder:
        node.names = {part.name: load(part) for part in path.iterdir()}
    node.fsync()
    return node


def apply(root: Node, base: Path, op: Op) -> None:
    def find(path: str) -> tuple[Node, str]:
        parts = Path(path).relative_to(base).parts
        node = root
        for part in parts[:-1]:
            node = node.names[part]
        return node, parts[-1] if parts else ""

    kind, path = op[0], op[1]
    parent, name = find(path)
    if kind in ("create", "mkdir"):
        if kind == "create" and name in parent.names:
            parent.names[name].content = b""
        else:
            parent.names[name] = Node(kind == "mkdir", new=True)
    elif kind == "write":
        parent.names[name].content += op[2]
    elif kind == "fsync":
        (parent.names[name] if name else root).fsync()
    elif kind == "unlink":
        del parent.names[name]
    else:
        target, new_name = find(op[2])
        target.names[new_name] = parent.names.pop(name)


def crash(node: Node, target: Path, mode: str) -> None:
    """Write what a crash would leave now, under `mode`."""
    target.mkdir()
    synced = mode in ("synced", "removals first") or (mode == "outer names first" and node.new)
    for name, part in (node.synced_names if synced else node.names).items():
        if mode == "removals first" and name not in node.names:
            continue
        if part.folder:
            crash(part, target / name, mode)
        else:
            (target / name).write_bytes(part.content if mode in ("all", "torn") else part.synced)


def crash_states(before: Path, base: Path, ops: list[Op], scratch: Path) -> Iterator[tuple[int, str, Path]]:
    """Yield the disk after every prefix of `ops`, under every mode. `before` is a copy of `base` from before
    the first operation."""
    root = load(before)
    for count, op in enumerate([None, *ops]):
        if op and op[0] == "write":
            half = len(op[2]) // 2
            apply(root, base, (*op[:2], op[2][:half]))
            yield count, "torn", laid_down(root, scratch / f"{count}-torn", "torn")
            apply(root, base, (*op[:2], op[2][half:]))
        elif op:
            apply(root, base, op)
        for mode in MODES:
            yield count, mode, laid_down(root, scratch / f"{count}-{mode}", mode)


def laid_down(root: Node, target: Path, mode: str) -> Path:
    crash(root, target, mode)
    return target
