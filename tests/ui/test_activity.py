"""Nobody waits long without a word."""

import io
import time

import pytest
from rich.console import Console

from foveal.core.progress import count_rows
from foveal.ui import activity
from foveal.ui.activity import Activity
from foveal.ui.progress_bar import ProgressBar


def screen(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> io.StringIO:
    shown = io.StringIO()
    monkeypatch.setattr(activity, "STDERR", Console(file=shown, force_terminal=terminal, width=100))
    monkeypatch.setattr(activity, "FIRST_LINE_SECONDS", 0.2)
    return shown


def test_a_terminal_is_told_at_once_and_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch, terminal=True)
    with Activity("reading photos.zip"):
        time.sleep(0.4)
        assert "reading photos.zip" in shown.getvalue()
    assert shown.getvalue().rstrip().endswith(("\x1b[2K", "\x1b[?25h"))


def test_other_outputs_are_told_of_long_work_with_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch, terminal=False)
    with Activity("reading a.csv"):
        list(count_rows(range(1234)))
    assert shown.getvalue() == ""
    with Activity("reading [b].csv"):
        list(count_rows(range(5678)))
        time.sleep(1.2)
    assert shown.getvalue().startswith("reading [b].csv")
    assert shown.getvalue().count("\n") == 1
    assert "1,234" not in shown.getvalue()


def test_the_first_item_of_a_bar_may_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = screen(monkeypatch, terminal=True)
    with ProgressBar("test outputs", before="reading pairs.tsv") as progress:
        time.sleep(0.4)
        assert "reading pairs.tsv" in shown.getvalue()
        progress(0, 2)
        progress(1, 2)
        after_first = len(shown.getvalue())
        time.sleep(0.3)
        assert len(shown.getvalue()) == after_first
