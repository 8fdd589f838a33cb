"""What several tests of the page share: Chromium, and a folder with two trained runs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kill import own_cache
from tests.support.browser import launched_browser
from tests.support.labeled_images import train, write_images

RUNS = ("first", "second")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched_browser() as one:
        yield one


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with two trained runs."""
    here = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOVEAL_CACHE", str(own_cache(here / "cache")))
        patch.chdir(here)
        data = write_images()
        for run, steps in zip(RUNS, (1, 10), strict=True):
            train(data, "--model", "mlp", run=run, steps=steps)
        yield here
