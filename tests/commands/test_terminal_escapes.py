"""Control characters of labels, names, settings and tokenizers never reach the terminal as they are."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from foveal.core.terminal_text import OBEYED_CHARACTERS
from tests.support.command_line import TINY_MODEL, refuse, run_command, succeed

BAD = "\x1b]0;owned\x07\x1b[31m\x9b2J\u202e[red]"
LABELS = (f"good{BAD}", f"bad{BAD}")


def table(path: str = "reviews.jsonl") -> None:
    rows = [{"text": f"{'fine' if n % 2 else 'poor'} thing {n}", "label": LABELS[n % 2]} for n in range(80)]
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))


def check(text: str) -> None:
    assert not OBEYED_CHARACTERS.search(text), repr(text)


def test_labels_are_shown_and_not_obeyed(here: Path) -> None:
    table()
    tiny = ("model.encoder.width=8", "data.tokenizer=character", "--budget", "4steps", "--run", f"run{BAD}")
    told = succeed("train", "reviews.jsonl", "--task", "text-classification", *tiny)
    check(told.out + told.err)
    run = Path(f"run{BAD}")
    for command in ("evaluate", "predict"):
        told = succeed(command, run, "reviews.jsonl")
        check(told.out + told.err)
    assert r"\x1b]0;owned\x07" in told.out
    check(succeed("inspect", run, "confusion").out)
    answers = json.loads(succeed("predict", run, "reviews.jsonl", "--json").out)["predictions"]
    assert {answer["output"] for answer in answers} <= {*LABELS}, "JSON has the exact label"


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", f"none{BAD}.txt"),
        ("train", "text.txt", f"data.label={BAD}"),
        ("train", "text.txt", f"{BAD}=1"),
        ("train", "text.txt", "--model", BAD),
        ("train", "text.txt", "--task", BAD),
        ("train", "text.txt", f"--{BAD}"),
        ("evaluate", BAD),
        ("inspect", BAD),
        (BAD,),
    ],
    ids=range(9),
)
def test_error_lines_show_escapes(arguments: tuple[str, ...]) -> None:
    line = refuse(*arguments)
    check(line.removesuffix("\n"))
    assert r"\x1b" in line


def test_help_with_a_name_of_the_user() -> None:
    check(run_command("inspect", BAD, "layers", "--help").out.replace("\n", ""))


def test_settings_with_controls_are_written_escaped() -> None:
    told = succeed("train", "text.txt", f"data.text={BAD}", "--print-config")
    check(told.out)
    Path("own.toml").write_text(told.out)
    assert succeed("train", "text.txt", "--model", "own.toml", "--print-config").out == told.out


@pytest.mark.parametrize("argument", ["--prompt=\udcff", "--run=\udcff", "data.text=\udcff", "\udcff"])
def test_half_characters_are_refused(argument: str) -> None:
    assert "not UTF-8 text; write it in UTF-8" in refuse("train", "text.txt", argument)


@pytest.mark.slow
def test_a_terminal_gets_generated_text_escaped_and_a_file_gets_it_exactly(here: Path) -> None:
    Path("odd.txt").write_bytes(b"\x1b[2J\x0c\x07 text\n" * 500)
    succeed("train", "odd.txt", *TINY_MODEL, "--budget", "20steps", "--run", "odd", "optimizer.lr=0.05")
    command = [sys.executable, "-m", "foveal", "generate", "odd", "--prompt", "\x1b[2J\x0c", "--tokens", "60"]
    exact = subprocess.run(command, capture_output=True, check=True).stdout
    assert b"\x1b" in exact
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    shown = b""
    try:
        while block := os.read(ours, 4096):
            shown += block
    except OSError:  # the end of a terminal
        pass
    assert process.wait() == 0
    assert b"\x1b" not in shown
    assert rb"\x1b[2J" in shown
