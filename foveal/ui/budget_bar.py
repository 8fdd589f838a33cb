"""A progress bar for work with a budget of time."""

from foveal.ui.console import format_duration
from foveal.ui.progress_bar import ProgressBar


class BudgetBar(ProgressBar):
    """Shows how many seconds of a budget are spent, and the rest of the budget as the time left."""

    def _time_left(self, count: int) -> str:
        return f"{format_duration(float(count))} left"
