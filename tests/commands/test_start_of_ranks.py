"""Ranks that can't train together: one line says why, and nothing is written."""

from pathlib import Path

import pytest

from foveal.distributed.world import LOST_RANK_CODE
from tests.support.command_line import TINY_MODEL, refuse, train_run
from tests.support.started_ranks import run_by_hand
from tests.support.untrained_runs import write_plays

DATA = "plays.txt"
SMALL = ("--model", "lstm", *TINY_MODEL, "training.final_test=false", "--slots", "2")
OTHER_FOVEAL = "from foveal.api.training import follow; follow.__version__ = '0.0.7'"
OTHER_TORCH = "import torch; torch.__version__ = '1.2.3'"
OTHER_DATA = """
from foveal.tasks import session
same = session.data_facts
session.data_facts = lambda *run: same(*run).model_copy(update={"data": "other.txt"})
"""
NO_FOLDER = """
from pathlib import Path
exists = Path.exists
Path.exists = lambda path, **options: path.name != "run" and exists(path, **options)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_plays(DATA)
    return tmp_path


def refused_by_second(arguments: tuple[str, ...], before: str) -> str:
    """Return the only line of two ranks, of which the second refuses to train."""
    first, second = run_by_hand(arguments, "", before)
    assert (first.code, first.err) == (LOST_RANK_CODE, "")
    assert second.code == 2
    (line,) = second.err.splitlines()
    return line


def test_a_rank_with_another_version_of_foveal_makes_no_run() -> None:
    line = refused_by_second(("train", DATA, *SMALL, "--budget", "3steps"), OTHER_FOVEAL)
    assert line.startswith("foveal: rank 1: this process has Foveal 0.0.7 with torch ")
    assert line.endswith(": install the same on all machines")
    assert not Path("runs").exists()


@pytest.mark.slow
def test_a_rank_with_another_version_of_torch_extends_no_budget() -> None:
    train_run(DATA, *SMALL, run="run", steps=3)
    before = Path("run/plan.json").read_bytes()
    line = refused_by_second(("resume", "run", "--budget", "+3steps"), OTHER_TORCH)
    assert " with torch 1.2.3, and rank 0 has Foveal " in line
    assert Path("run/plan.json").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "refused", "reason"),
    [
        (
            NO_FOLDER,
            "run",
            "rank 0 has its run there, and this process sees no such folder: give all machines the same "
            "folder, such as a shared --run",
        ),
        (
            OTHER_DATA,
            "other.txt",
            "this process reads other data there than rank 0, or none: give all machines the same files",
        ),
    ],
)
def test_a_rank_that_sees_other_files_leaves_no_run(before: str, refused: str, reason: str) -> None:
    Path("other.txt").write_text(Path(DATA).read_text().replace("cat", "dog"))
    train = ("train", DATA, *SMALL, "--budget", "3steps", "--run", "run")
    place = str(Path(refused).absolute()) if refused == "run" else refused
    assert refused_by_second(train, before) == f"foveal: rank 1: {place}: {reason}"
    assert not Path("run").exists()
    assert [each.code for each in run_by_hand(train, "", "")] == [0, 0]
    budget = Path("run/plan.json").read_bytes()
    more = ("resume", "run", "--budget", "+3steps")
    assert refused_by_second(more, before) == f"foveal: rank 1: {place}: {reason}"
    assert Path("run/plan.json").read_bytes() == budget
    Path("other.txt").unlink()
    assert [each.code for each in run_by_hand(more, "", "")] == [0, 0]
    assert "6 steps" in refuse("resume", "run")


@pytest.mark.slow
def test_a_dry_run_is_that_of_the_first_rank() -> None:
    first, second = run_by_hand(("train", DATA, *SMALL, "--budget", "3steps", "--dry-run", "--json"), "", "")
    assert (first.code, second.code, second.out) == (0, 0, "")
    assert '"steps": 3' in first.out
