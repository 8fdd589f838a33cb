"""Where progress is shown in place: on a terminal, or in a notebook."""

from collections.abc import Sequence

from rich.progress import ProgressColumn

from foveal.ui.console import STDERR, in_notebook
from foveal.ui.fitting_progress import FittingProgress
from foveal.ui.notebook_progress import NotebookProgress


def is_live() -> bool:
    """Return whether progress is shown in place."""
    return STDERR.is_terminal or (in_notebook() and not STDERR.quiet)


def new_progress(columns: Sequence[ProgressColumn], droppable: Sequence[ProgressColumn]) -> FittingProgress:
    """Return a progress display of one line, for a notebook or for a terminal."""
    kind = NotebookProgress if in_notebook() else FittingProgress
    return kind(*columns, droppable=droppable, console=STDERR)
