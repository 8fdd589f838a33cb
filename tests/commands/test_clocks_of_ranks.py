"""Ranks whose clocks differ end together: the main rank decides what depends on a clock."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.untrained_runs import SMALL_LSTM, write_plays

CLOCKS = """
import os, time

clock = time.perf_counter
if os.environ["RANK"] == "1":
    time.perf_counter = lambda: 1e6 + 3 * clock()

from foveal.__main__ import run

run()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (("--budget", "4s", "training.evaluate_every=20"), "budget"),
        (
            (
                "--budget",
                "2000steps",
                "training.evaluate_every=5",
                "training.patience=2",
                "optimizer.lr=1e-30",
            ),
            "early",
        ),
    ],
)
def test_ranks_end_together(
    settings: tuple[str, ...], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_plays("plays.txt")
    Path("clocks.py").write_text(CLOCKS)
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--", "clocks.py"]
    command = ["train", "plays.txt", *SMALL_LSTM, *settings, "training.final_test=false", "--run", "run"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        [*launcher, *command], env=environment, capture_output=True, text=True, timeout=200
    )
    assert result.returncode == 0, result.stderr
    records = [json.loads(line) for line in Path("run/metrics.jsonl").read_text().splitlines()]
    steps = [record["step"] for record in records if record["kind"] == "step"]
    assert steps == [*range(1, len(steps) + 1)]
    assert len(steps) == 15 if reason == "early" else len(steps) < 2000
