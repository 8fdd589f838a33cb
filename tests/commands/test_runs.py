"""`foveal runs`: the runs in a folder, whatever state they are in."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from foveal.store.run import open_run, run_lock
from foveal.store.sealed import open_json, seal_json
from tests.support.command_line import refuse, succeed


def edit(path: Path, **changes: Any) -> None:
    content = open_json(path.read_bytes(), "")
    path.write_bytes(seal_json(content | changes))


@pytest.fixture
def folder(finished: Path, here: Path) -> Path:
    """Copies of a finished run in every state."""
    for name in ("trained", "stopped", "begun", "imported", "damaged", "given"):
        shutil.copytree(finished, here / "runs" / name)
    runs = here / "runs"
    state = runs / "stopped" / "checkpoints" / "20" / "state.json"
    progress = open_json(state.read_bytes(), "")["progress"]
    edit(state, progress=progress | {"finished": "", "step": 12})
    for name in ("begun", "given"):
        shutil.rmtree(runs / name / "checkpoints")
    (runs / "begun" / "model.safetensors").unlink()
    data = json.loads((runs / "imported" / "run.json").read_text())["data"]
    edit(runs / "imported" / "run.json", data=data | {"imported": "gpt2"})
    (runs / "damaged" / "run.json").write_text("{}")
    (runs / "no run").mkdir()
    return runs


def listed(*options: str) -> dict[str, dict[str, Any]]:
    rows = json.loads(succeed("runs", *options, "--json").out)["runs"]
    return {Path(row["run"]).name: row for row in rows}


def test_every_state(folder: Path) -> None:
    rows = listed()
    assert {name: row["state"].partition(":")[0] for name, row in rows.items()} == {
        "begun": "not begun",
        "damaged": "damaged",
        "given": "trained",
        "imported": "imported",
        "stopped": "stopped at step 12",
        "trained": "trained",
    }
    assert rows["imported"]["data"] == "gpt2"
    whole = rows["trained"]
    assert whole["score_name"] == "loss"
    scores = open_json((folder / "trained/scores.json").read_bytes(), "")
    assert whole["score_split"] == scores["split"] == "test"
    assert whole["score"] == scores["scores"]["loss"]
    assert rows["stopped"]["score_split"] == "valid"  # its scores are those of another step
    assert rows["stopped"]["score"] != whole["score"]
    assert whole["steps"] == 20
    assert whole["minutes"] > 0
    assert whole["data"].endswith("text.txt")
    with run_lock(open_run(folder / "trained")):
        assert listed()["trained"]["state"] == "training now"
    table = succeed("runs")
    assert "stopped" in table.out  # the words of a cell stand on several lines of a narrow terminal
    assert "damaged: damaged: run.json: damaged or edited" in table.err


def test_sorting_and_names(folder: Path) -> None:
    (folder / "given" / "scores.json").unlink()  # as in a run of an older version
    log = folder / "given" / "metrics.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    log.write_text("".join(json.dumps(line | {"loss": line["loss"] / 10}) + "\n" for line in lines))
    assert next(iter(listed("--sort", "score"))) == "given"
    assert [*listed("--sort", "score")][-1] == "damaged"
    assert [*listed(str(folder / "trained"))] == ["trained"]
    assert "nowhere: no such folder; name the folder that has the runs" in refuse("runs", "nowhere")
    assert succeed("runs", folder / "no run").err.endswith("no run: no runs in it\n")


def test_listing_needs_no_torch() -> None:
    import subprocess

    code = "import sys, foveal.commands.runs; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
