"""The cache: where it is, and one builder at a time."""

import threading
from pathlib import Path

import pytest

from foveal.store.cache import cache_folder, file_lock


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("FOVEAL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "foveal"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "foveal"


def test_one_builder_at_a_time(tmp_path: Path) -> None:
    entered = threading.Event()

    def build() -> None:
        with file_lock(tmp_path / "deep" / "store"):
            entered.set()

    other = threading.Thread(target=build)
    with file_lock(tmp_path / "deep" / "store"):
        other.start()
        assert not entered.wait(0.3)
        with file_lock(tmp_path / "deep" / "another"):
            pass
    assert entered.wait(10)
    other.join()
