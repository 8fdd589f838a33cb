"""Variables of a job that hold no number are refused in one line, by each command."""

import os
import subprocess

import pytest

from foveal.core.errors import UserError
from foveal.core.rank import processes_here, rank, world_size


@pytest.mark.parametrize("value", ["two", "0", "-1", "2.0", "²"])
def test_a_wrong_size_is_one_line(foveal: list[str], value: str) -> None:
    command, job = [*foveal, "data", "list"], {"WORLD_SIZE": value, "RANK": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | job, check=False)
    line = f"rank 1: WORLD_SIZE={value}: expected a number from 1 on\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"foveal: {line}")


def test_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "")
    monkeypatch.setenv("RANK", "3")
    assert (world_size(), rank(), processes_here()) == (1, 0, 1)


def test_numbers_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"WORLD_SIZE": "4", "RANK": "3", "LOCAL_WORLD_SIZE": "two"}.items():
        monkeypatch.setenv(name, value)
    assert (world_size(), rank()) == (4, 3)
    with pytest.raises(UserError, match="LOCAL_WORLD_SIZE=two: expected a number from 1 on"):
        processes_here()
    monkeypatch.setenv("RANK", "three")
    assert rank() == 0
