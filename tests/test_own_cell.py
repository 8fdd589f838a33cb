"""The example of an own cell trains, resumes and generates by commands; the benchmark has another."""

import json
from pathlib import Path

import pytest

from benchmarks.kill import own_cache, story
from benchmarks.own_cell import measure_layer, measure_training
from tests.support.command_line import TINY_MODEL, succeed
from tests.support.docs_pages import DOCS
from tests.support.killed_runs import check_killed_run
from tests.support.mixer_rows import ROWS
from tests.support.own_cell import PATH, MinimalGated

PLUGIN = ("--plugin", str(PATH), "model.mixers=minimal-gated")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_registries: None) -> Path:
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path / "cache")))
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text(story())
    return tmp_path


def test_learns_and_generates(here: Path) -> None:
    steps = ("--budget", "40steps", "training.evaluate_every=20", "data.batch_tokens=512")
    succeed("train", "text.txt", *PLUGIN, *TINY_MODEL, "optimizer.lr=1e-2", *steps, "--run", "run")
    records = map(json.loads, Path("run/metrics.jsonl").read_text().splitlines())
    losses = [record["loss"] for record in records if record["kind"] == "evaluation"]
    assert losses[-1] < 2.5 < losses[0]
    texts = [
        succeed("generate", "run", "--tokens", 50, "--seed", 1, *options).out
        for options in (("--trust-plugin",), PLUGIN[:2])
    ]
    assert len(texts[0]) > 50
    assert texts[0] == texts[1]


@pytest.mark.slow
def test_killed_and_resumed_from_the_stored_source(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the run folder has the code: the file of the plugin is gone."""

    def write() -> None:
        Path("text.txt").write_text(story())
        Path("cell.py").write_text(PATH.read_text())

    settings = ("--plugin", "cell.py", *PLUGIN[2:], *TINY_MODEL)
    check_killed_run(here, monkeypatch, write, "text.txt", settings, ("resume", "run", "--trust-plugin"))


def test_the_page_has_the_whole_example() -> None:
    _, _, code = PATH.read_text("utf-8").partition('"""\n\n')
    assert f"```python\n{code}```" in (DOCS / "own-cell.md").read_text("utf-8")


def test_the_cell_is_among_the_laws() -> None:
    assert isinstance(ROWS["own-cell"].make().cell, MinimalGated)


@pytest.mark.parametrize("measure", [measure_layer, measure_training])
def test_the_benchmark_runs(measure):
    """The benchmark compares its cell with `torch.nn.LSTM` and with our LSTM, then times them."""
    assert measure(8, 2, 3, 0.4, quick=True).value > 0
