"""Types and shapes are checked in tests: the annotations of the whole package, by jaxtyping and beartype."""

import functools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from jaxtyping import config, install_import_hook

from tests.support.type_checks import check_types

install_import_hook("foveal", f"{check_types.__module__}.{check_types.__name__}")

import pytest  # noqa: E402
import torch  # noqa: E402

from foveal.training import step as training_step  # noqa: E402
from tests.support.marks import mark_of  # noqa: E402
from tests.support.registries import restored_registries  # noqa: E402

TESTS = Path(__file__).parent
CHECK_COMMANDS = "--check-commands"

torch.set_num_threads(1)


def first_steps_checked(train_step: Any) -> Any:
    """Its `seed` ends with the number of the step: from the fifth on, shapes are what they were.

    To check them takes half of the time.
    """

    @functools.wraps(train_step)
    def step(*args: Any, seed: tuple[int, ...], **kwargs: Any) -> Any:
        with unchecked(sum(seed[-1:]) >= 4):
            return train_step(*args, seed=seed, **kwargs)

    return step


training_step.train_step = first_steps_checked(training_step.train_step)  # before anybody imports it


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(CHECK_COMMANDS, action="store_true", help="check types in whole commands, too")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by its folder."""
    for item in items:
        item.add_marker(mark_of(item.path.relative_to(TESTS)))


@pytest.fixture(autouse=True)
def kernels_on_every_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel for a few vectors is tested where it does not pay, too."""
    monkeypatch.setattr("foveal.ops.linear._is_intel", lambda: False)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def checked_in_other_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whole commands run code that other tests check. To check its types again takes half of their time."""
    is_command = request.node.get_closest_marker("command_line") is not None
    with unchecked(is_command and not request.config.getoption(CHECK_COMMANDS)):
        yield


@pytest.fixture
def types_unchecked() -> Iterator[None]:
    """In the test, arguments have any type, as those of users have."""
    with unchecked(True):
        yield


@contextmanager
def unchecked(is_unchecked: bool) -> Iterator[None]:
    """Return a context in which types and shapes are checked as before, or not at all."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", before or is_unchecked)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", before)


@pytest.fixture
def own_registries() -> Iterator[None]:
    """After the test, registries and plugins are as before."""
    with restored_registries():
        yield


@pytest.fixture
def outside_data() -> Path:
    """The folder of data that is not part of the project; the test is skipped where there is none."""
    folder = os.environ.get("FOVEAL_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("FOVEAL_DATA names no folder")
    return Path(folder)


@pytest.fixture
def foveal() -> list[str]:
    """The command, as a list to put arguments behind."""
    return [sys.executable, "-m", "foveal"]
