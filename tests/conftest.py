"""What all tests share: checks of types and shapes, marks, seeds."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from jaxtyping import config

from tests.support.type_checks import forget_calls, install_type_checks

install_type_checks()

import pytest  # noqa: E402
import torch  # noqa: E402

from tests.support.marks import mark_of  # noqa: E402
from tests.support.registries import restored_registries  # noqa: E402
from tests.support.study_trainings import TRAIN_IN_PROCESS, train_here  # noqa: E402

TESTS = Path(__file__).parent

torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by its folder."""
    for item in items:
        item.add_marker(mark_of(item.path.relative_to(TESTS)))


@pytest.fixture(autouse=True)
def kernels_on_every_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel for a few vectors is tested where it does not pay, too."""
    monkeypatch.setattr("foveal.ops.linear._is_intel", lambda: False)


@pytest.fixture(autouse=True)
def no_lines_of_slow_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command prints does not depend on how long its parts take here."""
    monkeypatch.setattr("foveal.ui.activity.FIRST_LINE_SECONDS", 3600.0)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def checked_from_the_start() -> None:
    """The first calls of each function in the test have their types checked."""
    forget_calls()


@pytest.fixture
def types_unchecked() -> Iterator[None]:
    """In the test, arguments have any type, as those of users have."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


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


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings of studies have no processes of their own."""
    monkeypatch.setattr(TRAIN_IN_PROCESS, train_here)
