"""Trainings of studies without processes of their own, which take a tenth of the time."""

from collections.abc import Sequence
from pathlib import Path

from foveal.core.signals import SignalHandler
from foveal.studies.trials.process import TrialEnd, WatchRecord
from tests.support.command_line import run_command

TRAIN_IN_PROCESS = "foveal.studies.trials.trainings.train_in_process"


def train_here(path: Path, arguments: Sequence[str], signals: SignalHandler, watch: WatchRecord) -> TrialEnd:
    """Train a run in this process."""
    if not (path / "curves.png").exists():
        result = run_command("train", *arguments, "--run", path)
        if result.code:
            return TrialEnd("failed", result.last.removeprefix("foveal: "))
    return TrialEnd("finished")
