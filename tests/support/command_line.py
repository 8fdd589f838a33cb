"""The command, called in this process: a process of its own would import torch each time."""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from foveal.cli import main

TINY = (
    "model.width=16",
    "model.layers=1",
    "model.embedding_width=0",
    "data.context_length=16",
    "data.batch_tokens=64",
    "training.evaluate_every=10",
)
"""Settings that make any preset small, and look at its text seldom: that takes the most time."""


@dataclass(frozen=True)
class Told:
    """How a command ended and what it said."""

    code: object
    out: str
    err: str

    @property
    def last(self) -> str:
        return self.err.splitlines()[-1]


def call(*arguments: object) -> Told:
    """`foveal ARGUMENTS`."""
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
    return Told(code or 0, out.getvalue(), err.getvalue())


def succeed(*arguments: object) -> Told:
    told = call(*arguments)
    assert told.code == 0, told.err
    return told


def trained(data: str, *more: object, run: str, steps: int) -> dict[str, Any]:
    """The result of `foveal train` for so many steps."""
    told = succeed("train", data, *more, "--budget", f"{steps}steps", "--run", run, "--json")
    result: dict[str, Any] = json.loads(told.out)
    return result


def predictions(*arguments: str) -> list[dict[str, str]]:
    """Of `foveal predict`."""
    found: list[dict[str, str]] = json.loads(succeed("predict", *arguments, "--json").out)["predictions"]
    return found


def refuse(*arguments: object) -> str:
    """The one line with which a command that the user can fix ends."""
    told = call(*arguments)
    assert told.code == 2, told
    assert told.out == ""
    assert told.err.startswith("foveal: ")
    assert told.err.count("\n") == 1, told.err
    return told.err


def tree(folder: Path) -> set[str]:
    """Everything below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
