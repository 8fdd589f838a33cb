"""What a run keeps, and what is refused before anything is lost."""

import tomllib
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch

from foveal.api.training import prepare
from foveal.core.errors import UserError
from foveal.core.runtime import resolve_device
from foveal.store import durable
from foveal.tasks.config import from_tables
from foveal.tasks.read_settings import config_to_toml
from tests.support.command_line import TINY_MODEL, refuse, succeed


def test_a_run_in_its_own_data_is_refused(here: Path) -> None:
    """There it would be read as data itself."""
    line = refuse("train", ".", *TINY_MODEL, "--budget", "2steps")
    assert "runs/" in line
    assert "is in ., so it would be read as data: choose --run outside of it" in line
    assert not Path("runs").exists()
    Path("held").mkdir()
    Path("held/text.txt").write_text("the cat sat.\n" * 50)
    assert "is in held" in refuse("train", "text.txt", *TINY_MODEL, "--valid", "held", "--run", "held/run")
    succeed("train", "held", *TINY_MODEL, "--budget", "2steps", "--run", "run")


def test_trainings_that_begin_at_once_have_runs_of_their_own(here: Path) -> None:
    def elsewhere(*given: Any) -> None:
        Path("runs/text-demo-1").mkdir(parents=True)
        announce(*given)

    announce = prepare._print_setup
    with patch("foveal.api.training.prepare._print_setup", elsewhere):
        told = succeed("train", "text.txt", *TINY_MODEL, "--budget", "2steps")
    assert "another process has just created that folder: this run is runs/text-demo-2" in told.err
    assert Path("runs/text-demo-2/model.safetensors").is_file()
    assert not [*Path("runs/text-demo-1").iterdir()]


def test_a_training_that_begins_while_another_creates_its_folder(here: Path) -> None:
    """Two computed the same free name at once; whoever comes second takes the next."""
    Path("runs").mkdir()
    with durable.atomic_folder(Path("runs/text-demo-1")):
        told = succeed("train", "text.txt", *TINY_MODEL, "--budget", "2steps")
        assert "this run is runs/text-demo-2" in told.err
    again = refuse("train", "text.txt", *TINY_MODEL, "--budget", "2steps", "--run", "runs/text-demo-2")
    assert "exists: choose another --run" in again


@pytest.mark.parametrize("split", ["--valid", "--test"])
def test_held_out_data_too_small_for_a_batch_leaves_no_run(here: Path, split: str) -> None:
    """Otherwise the same command with better data would say that the run exists."""
    Path("one.txt").write_text("t")
    line = refuse("train", "text.txt", *TINY_MODEL, split, "one.txt", "--budget", "2steps", "--run", "mine")
    assert "one.txt: the held-out text has 1 token(s)" in line
    assert not Path("mine").exists()


def test_resume_gives_a_finished_run_its_weights_back(run: Path) -> None:
    before = Path(run, "model.safetensors").read_bytes()
    for content in (None, before[:99]):
        Path(run, "model.safetensors").unlink()
        if content is not None:
            Path(run, "model.safetensors").write_bytes(content)
        assert "finished after 20 steps" in refuse("resume", run)
        assert Path(run, "model.safetensors").read_bytes() == before


def test_settings_are_written_as_they_can_be_read() -> None:
    odd = 'a\n\tb"\\\x08\x00\x7f\u2028é'
    config = from_tables({"data": {"text": odd}})
    assert from_tables(tomllib.loads(config_to_toml(config))).data.text == odd


def test_a_part_that_is_gone_is_noticed(here: Path) -> None:
    Path("data").mkdir()
    for part in ("train", "valid", "test"):
        rows = "".join(f"{part} {n} {'cat' * (n % 3)}\t{n % 2}\n" for n in range(40))
        Path(f"data/{part}.tsv").write_text("text\tlabel\n" + rows)
    succeed(
        "train",
        "data",
        "--budget",
        "2steps",
        "--run",
        "run",
        "model.encoder.width=8",
        "data.tokenizer=character",
    )
    Path("data/test.tsv").unlink()
    assert "the split test has changed since run was made" in refuse("evaluate", "run")


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("data.tokenizer=byte", "data.tokenizer belongs to the weights and can't change: leave it out"),
        ("data.vocab_size=300", "data.vocab_size is not read, since data.tokenizer=character"),
    ],
)
def test_the_tokens_of_a_run_to_begin_from_stay(finished: Path, setting: str, why: str) -> None:
    assert why in refuse("train", "text.txt", "--from", finished, setting, "--budget", "2steps")


def test_a_device_that_no_model_runs_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="models run on cpu, cuda or mps"):
        resolve_device("meta")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert resolve_device("cuda:1").index == 1
    with pytest.raises(UserError, match="CUDA devices here are 0 to 1"):
        resolve_device("cuda:2")


def test_words_are_not_exported(here: Path) -> None:
    tiny = (
        "--model",
        "mamba",
        "model.width=16",
        "model.layers=1",
        "model.projection_bias=false",
        "data.context_length=16",
    )
    succeed("train", "text.txt", *tiny, "data.tokenizer=word", "--budget", "2steps", "--run", "words")
    assert "data.tokenizer=word: Hugging Face has no tokenizer" in refuse("export", "words", "folder")
    assert not Path("folder").exists()
