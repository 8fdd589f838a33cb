"""A run that is killed after a checkpoint and resumed, compared with the same run that was never killed."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import kill
from tests.support.interrupted_command import kill_itself_at

CHECKPOINT_OFTEN = (
    "training.checkpoint_seconds=1e-6",
    "training.evaluate_every=4",
    "--budget",
    "9steps",
    "--run",
    "run",
)


def check_killed_run(
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[[], object],
    data: str,
    settings: tuple[str, ...],
    resume: tuple[str, ...] = ("resume", "run"),
) -> None:
    """Check that a run on `data` ends bit-equal, whether it was killed or not. `resume` is the command that
    continues it.

    The resumed run has only the checkpoint of step 6: random state, carried states, averages, and the best
    weights so far.
    """
    train = ["train", data, *settings, *CHECKPOINT_OFTEN]
    endings = []
    for place in (None, "after a sample"):
        folder = here / ("whole" if place is None else "struck")
        folder.mkdir()
        monkeypatch.chdir(folder)
        write()
        if place is not None:
            assert run_forked(folder, [place, *train], kill_itself_at) == -signal.SIGKILL
        again = train if place is None else [*resume]
        assert run_forked(folder, again) == 0, Path("output.txt").read_text()
        endings.append(kill.ending(folder / "run"))
    first, second = endings
    steps = [record for record in first["log"] if record["kind"] == "step"]
    assert [record["step"] for record in steps] == [*range(1, 10)]
    assert all(record["gradient_norm"] > 0 for record in steps)
    assert second == first


def run_forked(folder: Path, arguments: list[str], target: Any = None) -> int | None:
    process = kill.start(folder, arguments, target)
    process.join()
    return process.exitcode
