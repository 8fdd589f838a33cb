"""Facts of a real corpus that is not part of the project."""

from pathlib import Path

import pytest

from foveal.config import DataConfig
from foveal.data.prepare_corpus import prepare_corpus


def test_tiny_shakespeare(outside_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its 65 characters, in order, and every one of its 1,115,394 in one split and one only."""
    monkeypatch.setenv("FOVEAL_CACHE", str(tmp_path))
    prepared = prepare_corpus(str(outside_data / "tinyshakespeare.txt"), DataConfig(), None, None, print)
    assert prepared.processor.decode(range(12)) == "\n !$&',-.3:;"
    assert prepared.processor.size == 65
    parts = prepared.facts["parts"]
    assert sum(part["tokens"] for part in parts.values()) == 1_115_394
    assert 0.89 < parts["train"]["tokens"] / 1_115_394 < 0.91
