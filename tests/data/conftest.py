from pathlib import Path

import pytest
from hypothesis import settings

from benchmarks.kill import own_cache

settings.register_profile("patient", deadline=None)  # a busy machine is no failure
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has a cache of its own."""
    folder = own_cache(tmp_path_factory.mktemp("cache"))
    monkeypatch.setenv("FOVEAL_CACHE", str(folder))
    return folder
