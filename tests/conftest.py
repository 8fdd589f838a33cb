"""Shapes are checked in tests: jaxtyping annotations of the whole package, by beartype."""

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from jaxtyping import install_import_hook

install_import_hook("foveal", "beartype.beartype")

import pytest  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def kernels_on_every_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel for a few vectors is tested where it does not pay, too."""
    monkeypatch.setattr("foveal.ops.linear._intel", lambda: False)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


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
