"""Progress in a notebook: one line below the cell, which changes in place and goes."""

import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from rich.progress import TextColumn

from foveal.ui import console, notebook_progress
from foveal.ui.live import is_live, new_progress


class ZMQInteractiveShell:
    """The shell of a notebook's kernel, by its name."""


class Handle:
    """A display below a cell, which keeps what it has shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def update(self, content: dict[str, str], raw: bool) -> None:
        assert raw
        self.shown.append(content["text/plain"])


@pytest.fixture
def handle(monkeypatch: pytest.MonkeyPatch) -> Handle:
    handle = Handle()

    def display(content: dict[str, str], display_id: bool, raw: bool) -> Handle:
        handle.update(content, raw)
        return handle

    shell: Any = SimpleNamespace(get_ipython=ZMQInteractiveShell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", shell.display)
    return handle


def test_a_line_that_changes_in_place_and_goes(handle: Handle) -> None:
    assert is_live()
    assert not console.STDERR.is_terminal
    progress = new_progress([TextColumn("{task.fields[at]}", markup=False)], ())
    task = progress.add_task("", at="<1>")
    with patch.object(notebook_progress, "SECONDS_BETWEEN_UPDATES", 0):
        progress.start()
        progress.update(task, at="2 of 3")
        progress.stop()
        progress.update(task, at="3 of 3")
    assert handle.shown == ["<1>", "2 of 3", ""]


def test_no_more_messages_than_a_browser_takes(handle: Handle) -> None:
    progress = new_progress([TextColumn("{task.fields[at]}")], ())
    task = progress.add_task("", at="0")
    progress.start()
    for count in range(100):
        progress.update(task, at=str(count))
    assert len(handle.shown) <= 3


def test_outside_of_a_notebook() -> None:
    assert not console.in_notebook()
