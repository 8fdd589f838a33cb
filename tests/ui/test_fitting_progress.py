"""A line of progress is one line of any terminal."""

import io

import pytest
from rich.console import Console
from rich.progress import BarColumn, TextColumn

from foveal.ui.fitting_progress import FittingProgress


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (80, ("step 12/3,000", "loss 2.345", "9,999 characters/s", "1:23 left")),
        (60, ("step 12/3,000", "loss 2.345", "9,999 characters/s", "1:23 left")),
        (40, ("step 12/3,000", "loss 2.345", "1:23 left")),
        (25, ("step 12/3,000", "1:23 left")),
    ],
)
def test_fields_are_dropped_whole(width: int, shown: tuple[str, ...]) -> None:
    texts = ("step 12/3,000", "loss 2.345", "9,999 characters/s", "1:23 left")
    step, loss, speed, left = map(TextColumn, texts)
    bar, console = BarColumn(24), Console(file=io.StringIO(), width=width)
    columns = (step, bar, loss, speed, left)
    progress = FittingProgress(*columns, droppable=(bar, speed, loss), console=console)
    progress.add_task("", total=1.0)
    console.print(progress.make_tasks_table(progress.tasks))
    file = console.file
    assert isinstance(file, io.StringIO)
    (line,) = file.getvalue().splitlines()
    assert [text for text in texts if text in line] == list(shown)
    assert progress.columns == columns
