"""Checkpoints of a run. That they survive kills is tested with the training."""

from pathlib import Path

from foveal.store.checkpoint import load_latest


def test_a_run_that_was_sent_without_checkpoints_has_none(tmp_path: Path) -> None:
    assert load_latest(tmp_path / "checkpoints") == (None, [])
