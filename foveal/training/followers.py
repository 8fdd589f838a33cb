"""What the ranks beside the main rank do with the files of a run: they read checkpoints, and write their
parts of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foveal.store.durable import Chunk
from foveal.store.metrics_log import LogPosition
from foveal.store.plan import Plans
from foveal.training.run_files import RunFiles


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
    """The files of a run on the other ranks, which write their parts of checkpoints, and nothing else."""

    def write_plans(self, plans: Plans) -> None:
        """Do nothing."""

    def _write_again(self, weights: Sequence[Chunk]) -> str:
        """Free the best weights, which the main rank keeps."""
        self.state.best = None
        return ""

    def _new_draft(self) -> tuple[str, str]:
        return "", ""
