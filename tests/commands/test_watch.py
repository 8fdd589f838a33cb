"""`--watch`: the page of a training runs in a process of its own, and ends with it."""

import socket
import subprocess
import sys
import webbrowser
from pathlib import Path
from typing import Any

import pytest

from foveal.commands import watch
from foveal.store.run_list import RunSummary
from tests.support.command_line import refuse, succeed


class RecordedProcess:
    """A process that is never started."""

    made: list["RecordedProcess"]

    def __init__(self, command: list[str], **options: Any):
        self.command, self.options, self.pid, self.ended = command, options, 0, False
        type(self).made.append(self)

    def terminate(self) -> None:
        self.ended = True

    def wait(self, seconds: float) -> None:
        assert self.ended


def test_the_page_ends_with_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    RecordedProcess.made = []
    monkeypatch.setattr(subprocess, "Popen", RecordedProcess)
    monkeypatch.setattr("os.setpriority", lambda *numbers: None, raising=False)
    with pytest.raises(KeyboardInterrupt), watch.watched(Path("runs/a")):
        raise KeyboardInterrupt
    (process,) = RecordedProcess.made
    assert process.ended
    assert process.command[1:6] == ["-m", "foveal", "inspect", "runs/a", "--open"]
    assert process.options["stdout"] is sys.stderr, "the result of --json stays alone"


def test_the_run_that_trains_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[list[str]] = []
    monkeypatch.setattr(watch, "open_page", lambda tokens: opened.append([*tokens]))
    row = (None, None, None, None, None, None, None)
    rows = [RunSummary("a", *row, "training now"), RunSummary("b", *row, "trained")]
    watch.watch_runs(Path("runs"), rows)
    watch.watch_runs(Path("runs"), rows[1:])
    assert opened == [["a", "--open"], ["b", "--open"]]
    Path("empty").mkdir()
    assert "no runs in it; foveal train DATA --watch" in refuse("runs", "empty", "--watch")


def test_the_extra_is_named_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    line = refuse("train", "text.txt", "--watch")
    assert "--watch needs the package fastapi: pip install 'foveal[page]'" in line
    assert not Path("runs").exists()


def test_what_can_not_be_opened(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is one line, before an address is printed or a browser is opened."""
    monkeypatch.setattr(webbrowser, "open", lambda address: pytest.fail("a browser was opened"))
    Path("empty").mkdir()
    assert "not a Foveal run: it has no run.json" in refuse("inspect", "empty", "--open")
    assert "--device tpu7: not a device" in refuse("inspect", run, "--device", "tpu7", "--open")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"--port {port}: in use by another program" in refuse("inspect", run, "--open", "--port", port)
    assert "expected a run folder, or two" in refuse("inspect", "text.txt", "--open")
    assert "neither a run folder nor the only view" in refuse("inspect", run, "curves", "x", "--open")
    assert "there is no view curvs" in refuse("inspect", run, "curvs", "--open")
    assert "expected a name that ends in .html" in refuse("inspect", run, "--report", "x.png")


def test_a_report_and_a_page_of_one_view(run: Path) -> None:
    succeed("inspect", run, "curves", "--out", "curves.html")
    assert Path("curves.html").read_bytes().startswith(b"<!doctype html>")


def test_lines_of_several_views_are_shown_once(run: Path) -> None:
    for option, name in (("--out", "pictures"), ("--report", "report.html")):
        told = succeed("inspect", run, option, name).err
        assert told.count("which were held out; --data names others") == 1
