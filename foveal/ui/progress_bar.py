"""How far a long work is, and how long it will take: what a person sees while a run is measured or used."""

import time

from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from foveal.core.progress import ProgressCallback
from foveal.ui.console import STDERR, format_duration

SHOW_AFTER_SECONDS, LINE_INTERVAL_SECONDS = 2.0, 10.0
"""Seconds: what is done sooner is not shown; and from one line to the next where there is no terminal."""


class TimeLeftColumn(ProgressColumn):
    """Time left: by the budget until it is a plan, then by steps."""

    def render(self, task: Task) -> Text:
        return Text(str(task.fields["left"]), style="cyan")


class ProgressBar:
    """`with ProgressBar("test loss") as progress`: shows progress and the time left on standard error.

    On a terminal it is a bar that goes away, elsewhere a line now and then. Where the pieces begin again
    with the first, so does it.
    """

    def __init__(self, description: str):
        self.description = description
        columns = (
            TextColumn("{task.description}"),
            BarColumn(24),
            TextColumn("{task.fields[at]}"),
            TimeLeftColumn(),
        )
        self._progress = Progress(*columns, console=STDERR, transient=True)
        self._bar = self._progress.add_task(description, total=1.0, at="", left="")
        self._began = self._last_line = time.monotonic()

    def __enter__(self) -> ProgressCallback:
        return self._update

    def __exit__(self, *_: object) -> None:
        if STDERR.is_terminal:
            self._progress.stop()

    def _update(self, piece: int, pieces: int) -> None:
        now = time.monotonic()
        if piece == 0:
            self._began = self._last_line = now
            return
        gone = now - self._began
        at, left = f"{piece:,}/{pieces:,}", f"{format_duration(gone / piece * (pieces - piece))} left"
        if STDERR.is_terminal:
            if gone > SHOW_AFTER_SECONDS:
                self._progress.start()
            self._progress.update(self._bar, completed=piece / pieces, at=at, left=left)
        elif now > self._last_line + LINE_INTERVAL_SECONDS:
            self._last_line = now
            STDERR.print(f"{self.description} {at}  {left}")
