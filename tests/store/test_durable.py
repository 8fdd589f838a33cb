"""Files appear whole or not at all, whatever fails."""

import errno
import fcntl
import os
from collections.abc import Callable
from typing import Any

import pytest

from foveal.core.errors import RunFailed
from foveal.store import cache
from foveal.store.durable import atomic_folder, atomic_write, file_sha256, write_synced


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def failing(*given, **more):
    raise OSError(28, "No space left on device")


def test_atomic_write(tmp_path):
    path = tmp_path / "plan.json"
    atomic_write(path, b"old")
    atomic_write(path, b"new")
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["plan.json"]


@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
def test_a_failed_replacement_leaves_the_old_file(tmp_path, monkeypatch, call):
    """Until the last call that can fail, readers see the old content; the error names file and room."""
    path = tmp_path / "plan.json"
    atomic_write(path, b"old")
    with monkeypatch.context() as broken:
        broken.setattr(os, call, failing)
        with pytest.raises(
            RunFailed, match=r"plan\.json: can't write: No space left on device \([\d,]+ MB free"
        ):
            atomic_write(path, b"new")
    assert path.read_bytes() == b"old"
    atomic_write(path, b"newer")
    assert path.read_bytes() == b"newer"
    assert names(tmp_path) == ["plan.json"], "what a failure left behind is used up by the next success"


def test_writes_in_pieces(tmp_path, monkeypatch):
    """A write may take less than it was given."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, content: write(file, content[:3]))
    write_synced(tmp_path / "weights", b"0123456789")
    assert (tmp_path / "weights").read_bytes() == b"0123456789"


def test_write_synced_leaves_nothing_of_a_longer_file(tmp_path):
    write_synced(tmp_path / "a", b"long content")
    write_synced(tmp_path / "a", b"short")
    assert (tmp_path / "a").read_bytes() == b"short"


def test_atomic_folder_appears_whole(tmp_path):
    path = tmp_path / "step-10"
    with atomic_folder(path) as folder:
        (folder / "deep").mkdir()
        write_synced(folder / "deep" / "weights", b"w")
        assert not path.exists(), "nobody sees it before it is complete"
    assert (path / "deep" / "weights").read_bytes() == b"w"
    assert names(tmp_path) == ["step-10"]


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_atomic_folder_leaves_nothing_after_a_failure(tmp_path, error):
    def fill():
        with atomic_folder(tmp_path / "step-10") as folder:
            write_synced(folder / "weights", b"w")
            raise error

    with pytest.raises(error):
        fill()
    assert names(tmp_path) == []


def test_atomic_folder_on_a_full_disk(tmp_path, monkeypatch):
    def fill():
        with atomic_folder(tmp_path / "step-10") as folder, monkeypatch.context() as broken:
            broken.setattr(os, "write", failing)
            write_synced(folder / "weights", b"w")

    with pytest.raises(RunFailed, match=r"step-10: can't write: No space left"):
        fill()
    assert names(tmp_path) == []


def test_atomic_folder_is_never_put_over_another(tmp_path):
    path = tmp_path / "step-10"
    with atomic_folder(path) as folder:
        write_synced(folder / "weights", b"first")

    def again():
        with atomic_folder(path) as folder:
            write_synced(folder / "weights", b"second")

    with pytest.raises(RunFailed):
        again()
    assert (path / "weights").read_bytes() == b"first"
    assert names(tmp_path) == ["step-10"]


def test_atomic_folder_clears_what_a_killed_run_left(tmp_path):
    (tmp_path / ".step-10.part").mkdir()
    (tmp_path / ".step-10.part" / "half").write_bytes(b"?")
    with atomic_folder(tmp_path / "step-10") as folder:
        write_synced(folder / "weights", b"w")
    assert names(tmp_path / "step-10") == ["weights"]


def test_order_of_the_calls(tmp_path, monkeypatch):
    """The content is on the disk before its name, the name before the function returns."""
    calls: list[str] = []

    def recorded(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*given: Any) -> Any:
            calls.append(name)
            return real(*given)

        return call

    for name in ("fsync", "replace", "rename"):
        monkeypatch.setattr(os, name, recorded(name))
    atomic_write(tmp_path / "a", b"a")
    assert calls == ["fsync", "replace", "fsync"]
    calls.clear()
    with atomic_folder(tmp_path / "b") as folder:
        write_synced(folder / "a", b"a")
    assert calls == ["fsync", "fsync", "rename", "fsync"]


def test_file_sha256(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert file_sha256(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_two_at_once_do_not_fill_one_folder(tmp_path):
    """The second is told, and leaves the first alone; what a killed one left is used up."""
    path = tmp_path / "run"
    (tmp_path / ".run.part" / "deep").mkdir(parents=True)
    (tmp_path / ".run.part" / "old").write_bytes(b"old")
    with atomic_folder(path) as first:
        write_synced(first / "a", b"first")
        taken = pytest.raises(RunFailed, match="run: can't write: another process is writing it")
        with taken, atomic_folder(path) as second:
            write_synced(second / "a", b"second")
        assert names(first) == ["a"]
    assert (path / "a").read_bytes() == b"first"
    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP])
def test_a_file_system_without_locks(tmp_path, monkeypatch, number):
    def without(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", without)
    with atomic_folder(tmp_path / "run"), cache.file_lock(tmp_path / "data"):
        pass
    assert (tmp_path / "run").is_dir()
