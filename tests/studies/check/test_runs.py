"""`foveal check RUN`: a run that is right keeps all laws; each planted fault is named; nothing is written."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import foveal
from foveal.store.checkpoint_list import list_checkpoints
from foveal.ui.progress_bar import ProgressBar
from tests.support.checked_run import FIRST, LAST, train_run
from tests.support.command_line import refuse, run_command, succeed


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_run(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "run"))


def verdicts(*arguments: object) -> dict[str, dict[str, Any]]:
    result = run_command("check", *arguments, "--json")
    return {f"{law['part']}: {law['law']}": law for law in json.loads(result.out)["laws"]}


def broken(*arguments: object) -> dict[str, dict[str, Any]]:
    return {name: law for name, law in verdicts(*arguments).items() if law["verdict"] == "BROKEN"}


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_run_keeps_every_law_and_is_not_written_to(run: Path):
    before = contents(run)
    laws = verdicts(run, "--steps", LAST - FIRST)
    assert "BROKEN" not in {law["verdict"] for law in laws.values()}
    for law in (
        f"training: the first {LAST - FIRST} steps are those of the log",
        "training: a training that is stopped and resumed ends as one that is not",
        f"training: {LAST - FIRST} steps from checkpoint {FIRST} give the hashes of checkpoint {LAST}",
        "processor: it decodes what it encodes",
        "data: unchanged since the training",
    ):
        assert laws[law]["holds"]
    assert contents(run) == before


def test_averaged_weights_and_dropout_are_replayed_as_well(tmp_path: Path):
    run = train_run(tmp_path, "training.average_checkpoints=2", "model.dropout=0.2")
    assert not broken(run, "--steps", LAST - FIRST)


@pytest.mark.slow
def test_a_frozen_encoder_breaks_no_law(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("the good film and the bad film\n" * 40)
    settings = ("model.encoder.width=16", "model.encoder.layers=1", "data.context_length=16", "-q")
    succeed("train", "text.txt", "--task", "masked-lm", *settings, "--budget", "2steps", "--run", "base")
    rows = [f"{mood} film {number},{mood}" for number in range(20) for mood in ("good", "bad")]
    Path("moods.csv").write_text("\n".join(["text,label", *rows]))
    succeed(
        "train",
        "moods.csv",
        "--from",
        "base",
        "--task",
        "text-classification",
        "training.freeze=encoder",
        "--budget",
        "2steps",
        "--run",
        "frozen",
        "-q",
    )
    assert not broken("frozen", "--steps", "1")


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


def test_damaged_files_are_named(run: Path):
    edit(run / "model.safetensors", lambda content: content[:-1] + bytes([content[-1] ^ 1]))
    weights = list_checkpoints(run / "checkpoints")[-1] / "weights.safetensors"
    edit(weights, lambda content: content[:-1] + bytes([content[-1] ^ 1]))
    laws = broken(run, "--steps", "2")
    assert "does not match its own sha256" in laws["files: the weights are sealed and finite"]["problem"]
    assert "weights.safetensors: damaged" in laws["files: checkpoints are sealed and complete"]["problem"]


def test_an_edited_config_is_all_that_is_said(run: Path):
    edit(run / "config.toml", lambda content: content + b"\n")
    assert [*verdicts(run)] == ["files: sealed and complete"]
    result = run_command("check", run)
    assert result.code == 1
    assert "files breaks 'sealed and complete'" in result.last
    assert "config.toml: edited since the run was created" in result.last


def test_another_log_is_not_replayed(run: Path):
    edit(run / "metrics.jsonl", lambda content: content.replace(b'"loss": 3.', b'"loss": 2.', 1))
    law = broken(run, "--steps", "3")["training: the first 3 steps are those of the log"]
    assert law["case"] == "step 1"
    assert law["difference"] == pytest.approx(1)


def test_data_that_have_changed_are_named_and_not_trained_on(trained: Path, tmp_path: Path):
    shutil.copytree(trained.parent, tmp_path / "copy")
    run, data = tmp_path / "copy/run", trained.parent / "notes.txt"
    text = data.read_text()
    try:
        data.write_text(text.replace("red", "tan"))
        laws = verdicts(run, "--steps", "2")
    finally:
        data.write_text(text)
    assert laws["data: unchanged since the training"]["verdict"] == "BROKEN"
    replay = laws["training: replayed steps are those of the log"]
    assert replay["verdict"] == "not applicable"
    assert "has changed since" in replay["problem"]


def test_a_run_before_its_first_step(trained: Path, run: Path):
    for path in (run / "model.safetensors", run / "plan.json"):
        path.unlink()
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").mkdir()
    (run / "metrics.jsonl").write_bytes(b"")
    laws = verdicts(run)
    assert laws["files: the weights are sealed and finite"]["problem"] == "there are no weights yet"
    assert laws["training: replayed steps are those of the log"]["problem"] == "no step was logged"
    assert "BROKEN" not in {law["verdict"] for law in laws.values()}


def test_the_run_of_an_own_module(tmp_path: Path):
    batches = [(torch.ones(4, 3), torch.zeros(4, dtype=torch.long))] * 4

    def objective(module: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return nn.functional.cross_entropy(module(batch[0]), batch[1])

    foveal.Trainer(
        nn.Linear(3, 2), objective, train=batches, budget="4steps", run=tmp_path / "own", quiet=True
    ).run()
    laws = verdicts(tmp_path / "own")
    assert "BROKEN" not in {law["verdict"] for law in laws.values()}
    assert laws["files: checkpoints are sealed and complete"]["holds"]
    assert "foveal.Trainer" in laws["training: replayed steps are those of the log"]["problem"]


def test_in_python_the_laws_are_a_table(run: Path, monkeypatch: pytest.MonkeyPatch):
    shown = list[tuple[int, int]]()
    monkeypatch.setattr(ProgressBar, "_update", lambda self, done, total: shown.append((done, total)))
    laws = foveal.check(run, steps=2, quiet=True)
    assert laws.holds
    assert not laws.broken
    assert set(laws["verdict"]) == {"holds", "not applicable"}
    assert "<table>" in laws._repr_html_()
    assert laws.verdict in laws._repr_html_()
    assert "every parameter learns " in repr(laws)
    assert "keeps" in repr(laws)
    assert laws["law"][-1] == f"2 steps from checkpoint {FIRST} are those of the log"
    replay, resumed = [(0, 2), (1, 2), (2, 2)], [(0, 1), (1, 1)]
    assert shown == [*replay, *replay, *resumed, *replay]


def test_a_number_of_steps(run: Path):
    assert "--steps 0: expected a whole number from 1 on" in refuse("check", run, "--steps", "0")


def test_options_that_a_run_does_not_read_are_refused(run: Path):
    for option in (("--input", "tokens:5"), ("--expect", "set"), ("model.width=3",)):
        assert f"{option[0]} is for " in refuse("check", run, *option)


def test_a_report(run: Path, tmp_path: Path):
    succeed("check", run, "--steps", "2", "--out", tmp_path / "laws")
    assert {path.suffix for path in (tmp_path / "laws").iterdir()} == {".html", ".json", ".png"}
    assert "beam 1 is greedy" in (tmp_path / "laws" / "report.json").read_text()
    foveal.check(run, steps=2, quiet=True).save(tmp_path / "laws.json")
    assert "beam 1 is greedy" in (tmp_path / "laws.json").read_text()
