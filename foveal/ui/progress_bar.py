"""A progress bar with the time left."""

import time
from functools import cached_property

from rich.progress import BarColumn, ProgressColumn, Task, TextColumn
from rich.text import Text

from foveal.core.progress import ProgressCallback
from foveal.ui.activity import Activity
from foveal.ui.console import STDERR, format_duration
from foveal.ui.fitting_progress import FittingProgress
from foveal.ui.live import is_live, new_progress

SHOW_AFTER_SECONDS, LINE_INTERVAL_SECONDS = 2.0, 10.0
"""Shorter work shows no bar; without a terminal, lines are printed at this interval."""


class TimeLeftColumn(ProgressColumn):
    """The time left, from the bar's field `left`."""

    def render(self, task: Task) -> Text:
        return Text(str(task.fields["left"]), style="cyan")


class ProgressBar:
    """Shows the progress of work on standard error: `with ProgressBar("test loss") as progress`.

    A terminal shows a bar, which disappears at the end. Other outputs get an occasional line. The bar
    restarts when the count of completed items restarts. Until a first item is complete, the work named
    `before` is shown, if it is given.
    """

    def __init__(self, description: str, before: str = ""):
        self.description = description
        self._started = self._last_line = time.monotonic()
        self._times: list[float] = []
        self._before = Activity(before) if before else None

    def __enter__(self) -> ProgressCallback:
        if self._before:
            self._before.__enter__()
        return self._update

    def __exit__(self, *_: object) -> None:
        self._stop_waiting()
        if "_progress" in vars(self):
            self._progress.stop()

    @cached_property
    def _progress(self) -> FittingProgress:
        """The bar, which takes longer to make than a short text to predict."""
        name, bar = TextColumn("{task.description}", markup=False), BarColumn(24)
        at, left = TextColumn("{task.fields[at]}"), TimeLeftColumn()
        progress = new_progress((name, bar, at, left), droppable=(bar, name))
        progress.add_task(self.description, total=1.0, at="", left="")
        return progress

    def _stop_waiting(self) -> None:
        if self._before:
            self._before.stop()

    def _update(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done == 0:
            self._started = self._last_line = now
            self._times = []
        self._times.append(now)
        if done == 0:
            return
        self._stop_waiting()
        seconds = now - self._started
        at, left = f"{done:,}/{total:,}", self._time_left(total - done)
        if is_live():
            if seconds > SHOW_AFTER_SECONDS:
                self._progress.start()
            self._progress.update(self._progress.task_ids[0], completed=done / total, at=at, left=left)
        elif now > self._last_line + LINE_INTERVAL_SECONDS:
            self._last_line = now
            STDERR.print(f"{self.description} {at}  {left}", markup=False)

    def _time_left(self, count: int) -> str:
        """Return the time of `count` more parts at the pace of the later half; nothing after a first part."""
        parts = len(self._times) - 1
        if parts < 2:
            return ""
        recent = -(-parts // 2)
        pace = (self._times[-1] - self._times[-1 - recent]) / recent
        return f"{format_duration(pace * count)} left"
