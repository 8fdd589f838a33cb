"""What the ranks beside the main rank do with the files of a run: they read checkpoints, and write
nothing."""

from pathlib import Path
from typing import Any

from foveal.store.checkpoint import Checkpoint
from foveal.store.metrics_log import LogPosition
from foveal.store.plan import Plans
from foveal.training.run_files import RunFiles, Weights
from foveal.training.snapshot import Snapshot


class NoLog:
    """A log that the main rank writes."""

    def __init__(self, path: Path):
        """Open nothing."""

    def write(self, record: dict[str, Any]) -> None:
        """Do nothing."""

    def position(self) -> LogPosition:
        return LogPosition()

    def sync(self) -> None:
        """Do nothing."""

    def truncate(self, position: LogPosition) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class FollowerFiles(RunFiles):
    """The files of a run that the main rank writes. The others send their parts of shared weights."""

    def write_plans(self, plans: Plans) -> None:
        """Do nothing."""

    def _rewrite_weights(self, newest: Checkpoint | None) -> str:
        self._kept_weights(newest)
        return ""

    def _write_best(self, weights: Weights) -> None:
        """Do nothing."""

    def _write_checkpoint(self, step: int, copy: Snapshot, last: Weights | None) -> None:
        """Do nothing."""
