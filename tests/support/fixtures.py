"""Fixtures that several folders of tests share."""

import os
from pathlib import Path

import pytest

from benchmarks.kill import own_cache


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip syncing to the disk."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give each test its own cache."""
    folder = own_cache(tmp_path_factory.mktemp("cache"))
    monkeypatch.setenv("FOVEAL_CACHE", str(folder))
    return folder
