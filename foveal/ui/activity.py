"""A line that says what a command is doing while nothing else is shown."""

import threading
import time

from foveal.core.progress import read_rows
from foveal.ui.console import STDERR, format_duration

FIRST_LINE_SECONDS, LINE_SECONDS = 2.0, 10.0
"""Without a terminal, seconds until the first line, and between two lines."""


class Activity:
    """Says on standard error what is being done: `with Activity("reading notes.txt"): ...`.

    A terminal shows the line at once, with the rows read and the time so far, and wipes the line at the end.
    Other outputs get a line if the work takes longer.
    """

    def __init__(self, description: str):
        self._description, self._started = description, time.monotonic()
        self._rows_before = read_rows()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)
        self._status = STDERR.status(self._text()) if STDERR.is_terminal else None

    def __enter__(self) -> "Activity":
        if self._status:
            self._status.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop to show the line, if it is still shown."""
        if not self._done.is_set():
            self._done.set()
            self._thread.join()
            if self._status:
                self._status.stop()

    def _text(self) -> str:
        rows = read_rows() - self._rows_before
        seconds = time.monotonic() - self._started
        parts = [self._description, f"{rows:,} rows" if rows else "", format_duration(seconds)]
        return "  ".join(filter(None, parts if seconds >= 1 else parts[:1]))

    def _show(self) -> None:
        wait = 1.0 if self._status else FIRST_LINE_SECONDS
        while not self._done.wait(wait):
            if self._status:
                self._status.update(self._text())
            else:
                STDERR.print(self._text(), markup=False, soft_wrap=True)
                wait = LINE_SECONDS
