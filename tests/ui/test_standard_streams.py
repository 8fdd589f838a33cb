"""Standard output of any encoding, closed, full, or without a reader."""

import os
import subprocess
import sys

import pytest

from tests.support.command_line import run_command

PROGRAM = """
import os
import sys
from foveal import cli
from foveal.ui.console import STDOUT, log, print_facts

def command():
    log("Größe \\u4e2d")
    {code}

cli.APP = cli.cyclopts.App(default_command=command)
sys.argv = ["foveal"]
cli.main()
"""
TEXT = "'Größe \\u4e2d\\udcff'"
WAYS = (f"print({TEXT})", f"STDOUT.print({TEXT})", f"print_facts([({TEXT}, {TEXT})], STDOUT)")
every_way = pytest.mark.parametrize("code", WAYS, ids=("print", "console", "facts"))
LOGGED = "Größe 中\n"


def run_program(code: str, redirection: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a shell, with its streams redirected."""
    program = PROGRAM.format(code=code)
    command = ["bash", "-c", f'"$@" {redirection}', "bash", sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, env=os.environ | environment, check=False)


@every_way
@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("ascii", rb"Gr\xf6\xdfe \u4e2d\udcff"),
        ("latin-1", b"Gr\xf6\xdfe \\u4e2d\\udcff"),
        ("utf-8", "Größe \u4e2d".encode() + rb"\udcff"),
    ],
)
def test_characters_without_a_code_are_escaped(code: str, encoding: str, text: bytes) -> None:
    done = run_program(code, "", PYTHONIOENCODING=encoding)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
    assert text in done.stdout


@every_way
@pytest.mark.parametrize(
    ("redirection", "reason"), [(">&-", "closed"), (">/dev/full", "No space left on device")]
)
def test_standard_output_that_takes_nothing(code: str, redirection: str, reason: str) -> None:
    done = run_program(code, redirection)
    assert done.returncode == 1
    assert done.stderr.decode() == f"{LOGGED}foveal: standard output: {reason}\n"


def test_a_disk_that_fills_while_results_are_written() -> None:
    done = run_program("print('row ' * 100_000)", ">/dev/full")
    assert done.stderr.decode() == f"{LOGGED}foveal: standard output: No space left on device\n"


def test_closed_standard_output_without_results() -> None:
    """Nothing was to be written there, and no file that is opened later takes its place."""
    done = run_program("assert open(os.devnull).fileno() > 1", ">&-")
    assert (done.returncode, done.stderr.decode()) == (0, LOGGED)


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_messages_that_nobody_takes_are_lost(redirection: str) -> None:
    done = run_program("print('result')", redirection)
    assert (done.returncode, done.stdout) == (0, b"result\n")


@every_way
def test_a_reader_that_goes_away(code: str) -> None:
    done = run_program(f"[{code} for _ in range(100_000)]", "| true; exit ${PIPESTATUS[0]}")
    assert (done.returncode, done.stderr.decode()) == (141, LOGGED)


def test_the_streams_of_a_test_stay() -> None:
    assert "Usage: foveal" in run_command("--help").out
