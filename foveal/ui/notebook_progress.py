"""Progress in a notebook: a line below the cell that changes in place."""

import html
import io
import time
from typing import Any

from foveal.ui.console import SafeConsole
from foveal.ui.fitting_progress import FittingProgress

LINE_WIDTH, SECONDS_BETWEEN_UPDATES = 110, 0.3
"""Letters of the line, and seconds between two changes of it: each is a message to the browser."""


class NotebookProgress(FittingProgress):
    """A progress display whose line is shown below the cell of a notebook."""

    _handle: Any = None
    _updated = 0.0

    def start(self) -> None:
        """Show the line."""
        if self._handle is None:
            from IPython.display import display

            self._handle = display(self._line(), display_id=True, raw=True)  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        """Remove the line."""
        if self._handle is not None:
            self._handle.update({"text/plain": "", "text/html": ""}, raw=True)
            self._handle = None

    def refresh(self) -> None:
        """Show the line as it is now, if it is time to do so."""
        now = time.monotonic()
        if self._handle is not None and now > self._updated + SECONDS_BETWEEN_UPDATES:
            self._updated = now
            self._handle.update(self._line(), raw=True)

    def update(self, *arguments: Any, **fields: Any) -> None:
        """Change fields of the line."""
        super().update(*arguments, **fields)
        self.refresh()

    def _line(self) -> dict[str, str]:
        console = SafeConsole(file=io.StringIO(), width=LINE_WIDTH, force_terminal=False, force_jupyter=False)
        with console.capture() as capture:
            console.print(self.make_tasks_table(self.tasks))
        text = capture.get().rstrip()
        return {"text/plain": text, "text/html": f"<pre>{html.escape(text)}</pre>"}
