"""Long work says how far it is and how long it will take; quick work says nothing."""

import io

import pytest
from rich.console import Console

from foveal.ui import live, progress_bar
from foveal.ui.progress_bar import ProgressBar


class Clock:
    now = 100.0

    def monotonic(self) -> float:
        return self.now


def screen(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> tuple[Clock, io.StringIO]:
    clock, shown = Clock(), io.StringIO()
    monkeypatch.setattr(progress_bar, "time", clock)
    shown_on = Console(file=shown, force_terminal=terminal, width=100)
    for module in (progress_bar, live):
        monkeypatch.setattr(module, "STDERR", shown_on)
    return clock, shown


def work(clock: Clock, pieces: int, seconds: float) -> None:
    with ProgressBar("test loss") as watch:
        for piece in range(pieces):
            watch(piece, pieces)
            clock.now += seconds


def test_without_a_terminal_a_line_every_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, shown = screen(monkeypatch, terminal=False)
    work(clock, pieces=40, seconds=1.0)
    assert shown.getvalue().splitlines() == [
        "test loss 11/40  29 s left",
        "test loss 22/40  18 s left",
        "test loss 33/40  7 s left",
    ]


def test_pieces_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, shown = screen(monkeypatch, terminal=False)
    with ProgressBar("images seen") as watch:
        for pieces in (5, 20):
            for piece in range(pieces):
                watch(piece, pieces)
                clock.now += 2.0
    assert shown.getvalue().splitlines() == [
        "images seen 6/20  28 s left",
        "images seen 12/20  16 s left",
        "images seen 18/20  4 s left",
    ]


def test_a_bar_on_a_terminal_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, shown = screen(monkeypatch, terminal=True)
    work(clock, pieces=9, seconds=1.0)
    assert "test loss" in shown.getvalue()
    assert shown.getvalue().rstrip().endswith("\x1b[2K"), "the last thing is that its line is wiped"


@pytest.mark.parametrize("terminal", [True, False])
def test_quick_work_says_nothing(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    clock, shown = screen(monkeypatch, terminal)
    work(clock, pieces=50, seconds=0.03)
    assert shown.getvalue() == ""


def test_a_slow_first_piece_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first piece once took 22 seconds, for kernels, and half an hour seemed left of eleven seconds."""
    clock, shown = screen(monkeypatch, terminal=False)
    with ProgressBar("test outputs") as watch:
        for piece in range(78):
            watch(piece, 78)
            clock.now += 22.0 if piece == 0 else 6.0 if piece < 3 else 0.1
    assert shown.getvalue().splitlines() == ["test outputs 1/78  ", "test outputs 3/78  7:30 left"]
