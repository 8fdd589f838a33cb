"""Run the command in the process of the tests: a process of its own would import torch each time."""

import csv
import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from foveal.cli import main

TINY_MODEL = (
    "model.width=16",
    "model.layers=1",
    "model.embedding_width=0",
    "data.context_length=16",
    "data.batch_tokens=64",
    "training.evaluate_every=10",
)
"""Settings that make any preset small, and look at its text seldom: that takes the most time."""


@dataclass(frozen=True)
class CommandResult:
    """The exit code of a command, and what it wrote to standard output and standard error."""

    code: object
    out: str
    err: str

    @property
    def last(self) -> str:
        """The last line of standard error."""
        return self.err.splitlines()[-1]


def run_command(*arguments: object) -> CommandResult:
    """Run `foveal ARGUMENTS`."""
    out, err, code = io.StringIO(), io.StringIO(), None
    with (
        patch.object(sys, "argv", ["foveal", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
    return CommandResult(code or 0, out.getvalue(), err.getvalue())


def succeed(*arguments: object) -> CommandResult:
    """Run a command that has to succeed."""
    result = run_command(*arguments)
    assert result.code == 0, result.err
    return result


def train_run(data: str, *more: object, run: str, steps: int) -> dict[str, Any]:
    """Run `foveal train` for `steps` steps and return its result."""
    finished = succeed("train", data, *more, "--budget", f"{steps}steps", "--run", run, "--json")
    result: dict[str, Any] = json.loads(finished.out)
    return result


def predictions(*arguments: str) -> list[dict[str, Any]]:
    """Run `foveal predict` and return its predictions."""
    found: list[dict[str, Any]] = json.loads(succeed("predict", *arguments, "--json").out)["predictions"]
    return found


def table_rows(text: str) -> list[dict[str, str]]:
    """Return the rows of a table with answers, which `foveal predict` has printed as CSV."""
    return list(csv.DictReader(io.StringIO(text)))


def refuse(*arguments: object) -> str:
    """Run a command that has to be refused, and return the one line that says how to fix it."""
    result = run_command(*arguments)
    assert result.code == 2, result
    assert result.out == ""
    assert result.err.startswith("foveal: "), result.err
    assert result.err.count("\n") == 1, result.err
    return result.err


def relative_paths(folder: Path) -> set[str]:
    """Return the paths of everything below a folder, relative to that folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
