"""Random ranks are killed at random moments, and the run ends as one that was never killed."""

from pathlib import Path

import pytest

from benchmarks import rank_kills


@pytest.mark.slow
@pytest.mark.parametrize("name", rank_kills.CASES)
def test_at_random_moments(tmp_path: Path, name: str) -> None:
    counts = rank_kills.kill_case(tmp_path, name, 20, 2, seed=1)
    assert counts.kills >= 2
    assert counts.equal == counts.endings
