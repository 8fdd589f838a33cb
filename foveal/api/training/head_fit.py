"""The fit of a head in closed form, which comes before the first training step."""

import time
from dataclasses import dataclass
from typing import Any

from foveal.data.core.prepared_data import PreparedData
from foveal.tasks.base import Task
from foveal.ui.console import format_duration
from foveal.ui.progress_bar import ProgressBar


@dataclass(frozen=True)
class HeadFit:
    """The rows that a head was fitted to, and the seconds of the fit."""

    rows: int
    seconds: float

    def __str__(self) -> str:
        return f"features of {self.rows:,} rows and the head in closed form: {format_duration(self.seconds)}"


def fit_head(task: Task, prepared: PreparedData[Any, Any]) -> HeadFit | None:
    """Fit the head in closed form, if the config says so."""
    started = time.perf_counter()
    with ProgressBar("features", before="features") as progress:
        if not task.fit_head(prepared.train, progress):
            return None
    return HeadFit(len(prepared.train), time.perf_counter() - started)
