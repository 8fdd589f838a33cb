"""A part of a run's training once more, in a copy of its folder: the run itself is never written to."""

import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from foveal.core.callbacks import Callback, Record, StopTraining
from foveal.core.progress import ProgressCallback
from foveal.core.signals import SignalHandler
from foveal.data.core.prepared_data import PreparedData
from foveal.inspection.curves.log_records import read_metrics_log
from foveal.laws.law import LawBroken
from foveal.store.checkpoint import verified_checkpoint
from foveal.store.checkpoint_list import list_checkpoints
from foveal.store.manifest import LOCK_FILE
from foveal.store.run import RunFolder
from foveal.store.stored_tensors import is_of_group
from foveal.tasks.base import Task
from foveal.tasks.session import build_model
from foveal.tasks.warm_start import load_initial_weights
from foveal.training.callbacks import CallbackList
from foveal.training.snapshot import CARRY, OPTIMIZER, WEIGHTS
from foveal.training.trainer import Trainer

UNTIMED = ("epoch", "tokens", "loss", "objective", "terms", "rate", "gradient_norm", "gradient_largest")
"""What a line of the log says of a step, besides times."""
SUMS = ("loss", "objective", "terms", "gradient_norm", "gradient_largest")
"""The numbers of them that depend on the order of sums."""
LAST_BITS = 1e-5
"""The part of a number that may be due to rounding."""
KEPT = "kept"
"""The folder of the checkpoints that a replay keeps; a training keeps the last two alone."""
COMPARED = (WEIGHTS, OPTIMIZER, CARRY)
"""The tensors of a checkpoint that are compared. Others change at an evaluation of the same step."""


@dataclass(frozen=True)
class RunReplay:
    """A run whose training is repeated in part, with its data and the device it was trained on."""

    run: RunFolder
    task: Task
    data: PreparedData[Any, Any]
    device: torch.device
    progress: ProgressCallback
    """Told after each step how many of how many are replayed."""

    def train(
        self,
        folder: Path,
        start: Path | None,
        last: int,
        save: Collection[int] = (),
        origin: "Replayed | None" = None,
    ) -> "Replayed":
        """Train in a new folder from a checkpoint, or from the beginning, to step `last`. The checkpoint is
        one of the run, or of its replay `origin`.

        Checkpoints are kept after the steps in `save`.
        """
        run = RunFolder(folder, self.run.config, self.run.manifest)
        _copy_run((self if origin is None else origin).run.path, folder, start)
        task = self.task.bind(self.data.processor, build_model(self.task, self.device))
        load_initial_weights(self.run, task.model)
        held_out = self.data.held_out if self.data.valid is None else self.data.valid
        valid = None if self.data.valid is None else task.eval_batches(self.data.valid)
        saver = _Saver(save, 0 if start is None else step_of(start), last, folder / KEPT, self.progress)
        objective, batches = task.objective(held_out), task.train_batches(self.data.train)
        trainer = saver.trainer = Trainer(run, task.model, objective, batches, valid, CallbackList([saver]))
        with _threads_of(self.run):
            trainer.run(SignalHandler())
        return Replayed(run)


@dataclass(frozen=True)
class Replayed:
    """The folder of a part of a training that was repeated."""

    run: RunFolder

    def checkpoint(self, step: int) -> Path:
        """Return the checkpoint that was kept after a step."""
        return self.run.path / KEPT / str(step)


class _Saver(Callback):
    """Writes checkpoints after some steps, and ends the training after the last one."""

    trainer: Trainer

    def __init__(self, save: Collection[int], first: int, last: int, kept: Path, progress: ProgressCallback):
        self.save, self.first, self.last, self.kept = save, first, last, kept
        self.progress = progress
        progress(0, last - first)

    def on_step(self, record: Record) -> None:
        self._after(record["step"])

    def on_skipped_step(self, record: Record) -> None:
        self._after(record["step"])

    def _after(self, step: int) -> None:
        self.progress(step - self.first, self.last - self.first)
        if step in self.save:
            self.trainer.save()
            newest = list_checkpoints(self.kept.parent / "checkpoints")[-1]
            shutil.copytree(newest, self.kept / str(step))
        if step == self.last:
            raise StopTraining


def require_logged_steps(
    replayed: RunFolder, run: RunFolder, first: int, last: int, tolerance: float
) -> None:
    """Check that the replayed steps have the numbers that the log of the run has: bit for bit, or with sums
    that differ by a part of each of at most `tolerance`.

    Raises: LawBroken: a step has other numbers.
    """
    logged, again = (_steps(each) for each in (run, replayed))
    for step in range(first, last + 1):
        for name, value in logged.get(step, {}).items():
            other = again.get(step, {}).get(name)
            if not _are_close(value, other, tolerance if name in SUMS else 0.0):
                raise _other_number(step, name, value, other)


def _are_close(value: Any, other: Any, tolerance: float) -> bool:
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(
            _are_close(each, other[name], tolerance) for name, each in value.items()
        )
    if isinstance(value, float) and isinstance(other, float):
        return abs(value - other) <= tolerance * abs(value)
    return bool(value == other)


def _other_number(step: int, name: str, logged: Any, again: Any) -> LawBroken:
    problem = f"step {step} has the {name} {again}, and the log says {logged}"
    if not (isinstance(logged, float) and isinstance(again, float)):
        return LawBroken(problem, None, f"step {step}")
    difference = abs(logged - again)
    if difference < LAST_BITS * abs(logged):
        problem += "; if another processor trained the run, this is its rounding"
    return LawBroken(problem, difference, f"step {step}")


def require_same_hashes(replayed: Path, own: Mapping[str, str], step: int) -> None:
    """Check that a checkpoint has the weights, the moments and the states of another, by their hashes.

    Raises: LawBroken: a file has another content.
    """
    again = file_hashes(replayed)
    other = sorted(name for name in own.keys() | again.keys() if own.get(name) != again.get(name))
    if other:
        problem = f"after step {step}, {', '.join(other)} of the replay are not those of the checkpoint"
        raise LawBroken(problem, None, f"step {step}")


def file_hashes(path: Path) -> dict[str, str]:
    """Return the hashes of the tensors of a checkpoint, by their files."""
    files = verified_checkpoint(path).files
    compared = [name for name in files if any(is_of_group(name, group) for group in COMPARED)]
    return {name: files[name].sha256 for name in compared}


def checkpoints_of(run: RunFolder) -> list[tuple[int, Path]]:
    """Return the checkpoints of a run with their steps, the oldest first."""
    return [(step_of(path), path) for path in list_checkpoints(run.checkpoints)]


def step_of(checkpoint: Path) -> int:
    """Return the step after which a checkpoint was written."""
    return int(checkpoint.name.partition("-")[0])


def logged_steps(run: RunFolder) -> int:
    """Return the number of steps that the log of a run has from the first one on, without a gap."""
    steps = _steps(run)
    return next(step for step in range(1, len(steps) + 2) if step not in steps) - 1


def logged_rounding(run: RunFolder, first: int, last: int) -> str:
    """Return why steps of a run were rounded otherwise than a replay rounds them; empty if none was."""
    records = (record for record in _records(run) if first <= record["step"] <= last)
    return ", then ".join(dict.fromkeys(record["rounding"] for record in records if "rounding" in record))


def _steps(run: RunFolder) -> dict[int, Record]:
    """Return what the log says of each step, without times."""
    return {
        record["step"]: {name: record[name] for name in UNTIMED if name in record} for record in _records(run)
    }


def _records(run: RunFolder) -> list[Record]:
    """Return the records of the steps of a run."""
    records = read_metrics_log(run.metrics)
    return [*records["step"], *records["refused"]]


def _copy_run(path: Path, folder: Path, start: Path | None) -> None:
    """Copy the folder of a run with a single checkpoint, or with none."""
    left_out = shutil.ignore_patterns("checkpoints", KEPT, LOCK_FILE, "*.png", "*.svg", "*.html")
    shutil.copytree(path, folder, ignore=left_out)
    (folder / "checkpoints").mkdir()
    if start is not None:
        shutil.copytree(start, folder / "checkpoints" / start.name)


@contextmanager
def _threads_of(run: RunFolder) -> Iterator[None]:
    """Compute on as many threads as the training of a run: sums of others may differ in the last bits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(run.manifest["threads"])
    try:
        yield
    finally:
        torch.set_num_threads(threads)
