"""Whether a training is at its end is read from its newest checkpoint."""

from pathlib import Path
from typing import Any

import pytest

from foveal.store.progress import is_at_its_end
from foveal.store.sealed_json import seal_json


def write(path: Path, **progress: Any) -> None:
    path.mkdir(parents=True)
    (path / "state.json").write_bytes(seal_json({"progress": progress}))


def test_the_newest_checkpoint_decides(tmp_path: Path) -> None:
    checkpoints, weights = tmp_path / "checkpoints", tmp_path / "model.safetensors"
    write(checkpoints / "9", step=9, finished="budget")
    assert is_at_its_end(checkpoints, weights)
    write(checkpoints / "10", step=10, finished="")
    assert not is_at_its_end(checkpoints, weights)
    write(checkpoints / "10-2", step=10, finished="patience")
    assert is_at_its_end(checkpoints, weights)


def test_without_checkpoints_the_weights_decide(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    assert not is_at_its_end(tmp_path / "checkpoints", weights)
    weights.touch()
    assert is_at_its_end(tmp_path / "checkpoints", weights)


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[]"])
def test_a_checkpoint_that_cannot_be_read_says_nothing(tmp_path: Path, content: bytes | None) -> None:
    folder = tmp_path / "checkpoints" / "3"
    folder.mkdir(parents=True)
    if content is not None:
        (folder / "state.json").write_bytes(content)
    assert not is_at_its_end(tmp_path / "checkpoints", tmp_path / "model.safetensors")
