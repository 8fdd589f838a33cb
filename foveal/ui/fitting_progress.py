"""A progress display of one line, which leaves out fields where the terminal is narrow."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.progress import Progress, ProgressColumn, Task
from rich.table import Table


class FittingProgress(Progress):
    """A progress display that leaves out columns until it fits, those of `droppable` in their order."""

    def __init__(self, *columns: ProgressColumn, droppable: Sequence[ProgressColumn], console: Console):
        self._droppable, self._screen = droppable, console  # the base class makes a first table at once
        super().__init__(*columns, console=console, transient=True)

    def make_tasks_table(self, tasks: Iterable[Task]) -> Table:
        """Return the line of each task."""
        all_columns, shown = self.columns, [*tasks]
        try:
            table = super().make_tasks_table(shown)
            for column in self._droppable:
                if self._width(table) <= self._screen.width:
                    break
                self.columns = tuple(other for other in self.columns if other is not column)
                table = super().make_tasks_table(shown)
        finally:
            self.columns = all_columns
        return table

    def _width(self, table: Table) -> int:
        """Return the width that a table takes if it has all the room it wants."""
        roomy = self._screen.options.update(max_width=1000)
        return Measurement.get(self._screen, roomy, table).maximum
