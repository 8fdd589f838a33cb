"""Every test here runs in a folder of its own, with a cache of the tests' own."""

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from benchmarks.kill import own_cache


@pytest.fixture(autouse=True, scope="package")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = own_cache(tmp_path_factory.mktemp("cache"))
    with patch.dict("os.environ", FOVEAL_CACHE=str(folder)):
        yield folder


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path
