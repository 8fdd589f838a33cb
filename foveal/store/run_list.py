"""The runs in a folder, each in a few facts. Only small files are read, without torch, so this is quick."""

import os
from dataclasses import dataclass
from pathlib import Path

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.store.locks import lock
from foveal.store.manifest import LOCK_FILE, MANIFEST_FILE, read_manifest
from foveal.store.progress import read_progress
from foveal.store.regular_files import open_regular, read_regular
from foveal.store.scores import FinalScores, read_scores

SCORES = ("accuracy", "success")
"""Metrics that say more than the loss, if an evaluation has one."""
EVALUATION = b'"kind": "evaluation"'


@dataclass(frozen=True)
class RunSummary:
    """A run in a few facts. What is not known is None."""

    run: str
    data: str | None
    model: str | None
    score: float | None
    """The score after the training; else that of the best evaluation, or of the last one if the run keeps its
    last weights."""
    score_name: str | None
    score_split: str | None
    """`test`, or `valid`."""
    steps: int | None
    minutes: float | None
    """Minutes of training steps."""
    state: str
    """`trained`, `training now`, `stopped at step 12`, `not begun`, `imported`, or `damaged: ...`."""


def list_runs(folder: Path) -> list[RunSummary]:
    """Return the runs in a folder, and the folder itself if it is a run, by their names.

    Raises: UserError: there is no such folder.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; name the folder that has the runs")
    if (folder / MANIFEST_FILE).exists():
        return [summarize_run(folder)]
    return [summarize_run(path.parent) for path in sorted(folder.glob(f"*/{MANIFEST_FILE}"))]


def summarize_run(path: Path) -> RunSummary:
    """Return the facts of a run. A run that can't be read is damaged, with the reason."""
    try:
        return _summarize(path)
    except (UserError, OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = str(error).removeprefix(f"{path}/") if isinstance(error, UserError) else type(error).__name__
        return RunSummary(str(path), None, None, None, None, None, None, None, f"damaged: {reason}")


def _summarize(path: Path) -> RunSummary:
    data = read_manifest(path)["data"]
    own = data.get("module")
    model = own["class_name"] if own else Path(data.get("preset") or "").stem or None
    progress = read_progress(path / "checkpoints")
    step = progress.get("step")
    final = read_scores(path, step) or _validation_scores(path / "metrics.jsonl", progress.get("best_step"))
    name = next((name for name in (*SCORES, "loss") if final.scores.get(name) is not None), None)
    if "imported" in data:
        state = "imported"
    elif is_locked(path):
        state = "training now"
    elif progress.get("finished"):
        state = "trained"
    elif step is not None:
        state = f"stopped at step {step:,}"
    else:
        state = "trained" if (path / "model.safetensors").exists() else "not begun"
    seconds = progress.get("seconds")
    return RunSummary(
        str(path),
        data.get("imported") or data.get("data") or ("own batches" if own else None),
        model,
        None if name is None else final.scores[name],
        name,
        None if name is None else final.split,
        step,
        None if seconds is None else seconds / 60,
        state,
    )


def _validation_scores(metrics: Path, best_step: int | None) -> FinalScores:
    """Return the scores of the evaluation at `best_step`, or of the last one."""
    if not metrics.exists():
        return FinalScores("valid", {})
    lines = [line for line in read_regular(metrics).splitlines() if EVALUATION in line]
    evaluations = [parse_json(line) for line in lines]
    chosen = [each for each in evaluations if best_step in (None, each["step"])][-1:]
    return FinalScores("valid", chosen[0] if chosen else {})


def is_locked(path: Path) -> bool:
    """Return whether a process trains the run. The lock is only tried, and let go at once."""
    try:
        descriptor = open_regular(path / LOCK_FILE, os.O_RDWR)
    except (UserError, OSError):  # never trained here, or in a folder that can't be written
        return False
    with open(descriptor, "r+b") as file:
        return not lock(file.fileno(), wait=False)
