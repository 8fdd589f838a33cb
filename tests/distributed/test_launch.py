"""What the exit codes of ranks mean, of which the first that failed has the others ended."""

import pytest

from foveal.core.rank import STOP_VARIABLE
from foveal.core.signals import Interrupted
from foveal.distributed.launch import RankLeft, _reason


@pytest.mark.parametrize(
    ("codes", "code"),
    [([2, 3, 3], 2), ([-15, 2, -9], 2), ([1, 3, -9], 0), ([1, 3, 143], 1), ([3, 3], 1), ([2, 4], 2)],
)
def test_a_rank_that_said_why_counts_first(codes: list[int], code: int) -> None:
    reason = _reason(dict(enumerate(codes)))
    assert isinstance(reason, SystemExit if code else RankLeft)
    assert str(reason) == (str(code) if code else f"rank {codes.index(-9)} was ended by SIGKILL")


@pytest.mark.parametrize(("codes", "code"), [([143, 143], 143), ([-2, -2], 130), ([-2, 143, -15], 130)])
def test_ranks_that_a_signal_stopped(codes: list[int], code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STOP_VARIABLE, "no such file")
    reason = _reason(dict(enumerate(codes)))
    assert isinstance(reason, Interrupted)
    assert reason.exit_code == code
