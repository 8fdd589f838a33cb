"""Every test here runs in a folder of its own, with a cache of the tests' own."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from benchmarks import kill
from benchmarks.kill import own_cache, story
from tests.support.command_line import TINY_MODEL, relative_paths, succeed
from tests.support.interrupted_command import TRAIN_COMMAND


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_cache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True, scope="package")
def short_samples() -> Iterator[None]:
    """The samples of a training in this process are short, because they take the most time."""
    with patch("foveal.objectives.language_model.PREVIEW_TOKENS", 24):
        yield


@pytest.fixture(autouse=True)
def here(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder the command runs in; `text.txt` is in it."""
    monkeypatch.setenv("FOVEAL_CACHE", str(cache))
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(story())
    return tmp_path


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A finished run of 20 steps, not to be changed; its data is `text.txt` beside it."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "text.txt").write_text(story())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOVEAL_CACHE", str(cache))
        patch.chdir(folder)
        succeed("train", folder / "text.txt", *TINY_MODEL, "--budget", "20steps", "--run", "run")
    return folder / "run"


@pytest.fixture
def run(finished: Path, here: Path) -> Path:
    """A copy of the finished run, to be damaged."""
    return Path(shutil.copytree(finished, here / "run"))


@pytest.fixture(scope="package")
def whole(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> dict[str, Any]:
    """The ending of `TRAIN_COMMAND` in this process, when nothing happens to it."""
    folder = kill.new_folder(tmp_path_factory.mktemp("whole"), "whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOVEAL_CACHE", str(cache))
        patch.chdir(folder)
        succeed(*TRAIN_COMMAND)
    return kill.ending(folder / "run")


@pytest.fixture
def nothing_left(here: Path, cache: Path) -> Iterator[None]:
    """After each test there is nothing new beside the data: no run, no part of one."""
    yield
    left = {
        name
        for name in relative_paths(here)
        if name.split("/")[0] in ("runs", "run") or name.endswith(".part")
    }
    assert left == set()
    assert not [path for path in cache.rglob("*") if path.name.endswith(".part")]
