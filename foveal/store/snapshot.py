"""All that a run is between two steps, and its form on the disk.

The data's position, the schedule and the random generators are functions of the step, so the step is all
there is to remember of them.
"""

from dataclasses import dataclass, field
from pathlib import Path

from torch import nn

from foveal.core.errors import UserError
from foveal.core.state import State, map_state, pack, unpack
from foveal.store.metrics_log import JsonlLog
from foveal.store.sealed import (
    dataclass_from_dict,
    dataclass_to_dict,
    load_weights,
    open_json,
    open_tensors,
    seal_json,
    seal_tensors,
    unique_state_dict,
)
from foveal.training.averaging import WeightAverage
from foveal.training.optim import Optimizer
from foveal.training.plan import Plan


@dataclass
class TrainingCounters:
    """The numbers. `seconds` is time in training steps alone. A `key` is the field's name in state.json."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    skipped_steps: int = field(default=0, metadata={"key": "refused"})
    """Skipped steps in a row."""
    last_eval_step: int = field(default=0, metadata={"key": "evaluated"})
    """The step of the last evaluation, and of the last preview. There is a preview of step 0, of noise."""
    last_preview_step: int = field(default=-1, metadata={"key": "previewed"})
    best_step: int | None = None
    best_loss: float | None = None
    evals_without_improvement: int = field(default=0, metadata={"key": "stale"})
    """Evaluations since the best one."""
    finish_reason: str = field(default="", metadata={"key": "finished"})
    """Why training is over, `budget` or `patience`; empty while it is not."""


@dataclass
class TrainingState:
    """Everything that a step reads or changes, except the model's weights."""

    optimizer: Optimizer
    average: WeightAverage | None
    carries: list[State]
    metrics: JsonlLog
    samples: JsonlLog
    plan: Plan | None = None
    best: bytes | None = None
    """The content of model.safetensors once an evaluation chose it."""
    counters: TrainingCounters = field(default_factory=TrainingCounters)


def to_files(training: TrainingState, model: nn.Module, run: str) -> dict[str, bytes]:
    """The files of a checkpoint; `run` is the fingerprint of the run they belong to."""
    carry, skeleton = pack(training.carries)
    state = {
        "run": run,
        "progress": dataclass_to_dict(training.counters),
        "plan": training.plan and dataclass_to_dict(training.plan),
        "metrics": training.metrics.offset(),
        "samples": training.samples.offset(),
        "carry": skeleton,
    }
    files = {
        "state.json": seal_json(state),
        "weights.safetensors": seal_tensors(unique_state_dict(model), {}),
        "optimizer.safetensors": seal_tensors(training.optimizer.state_dict(), {}),
        "carry.safetensors": seal_tensors(carry, {}),
    }
    if training.average:
        files["average.safetensors"] = seal_tensors(training.average.tensors, {})
    if training.best:
        files["best.safetensors"] = training.best
    return files


def from_files(
    training: TrainingState, model: nn.Module, run: str, path: Path, files: dict[str, bytes]
) -> None:
    """The inverse of `to_files`, in place; UserError if a part is missing or does not fit."""
    needed = {"state.json", "weights.safetensors", "optimizer.safetensors", "carry.safetensors"}
    if training.average:
        needed.add("average.safetensors")
    if missing := needed - files.keys():
        raise UserError(f"{path}: no {', '.join(sorted(missing))}")

    state = open_json(files["state.json"], str(path / "state.json"))
    if state["run"] != run:
        raise UserError(f"{path}: a checkpoint of another run; take it away")
    name = str(path / "state.json")
    plan = state["plan"] and dataclass_from_dict(Plan, state["plan"], name)
    if plan and plan != training.plan:
        raise UserError(f"{path}: made under another plan.json than the one that is there; restore it")
    counters = dataclass_from_dict(TrainingCounters, state["progress"], name)
    if (counters.best_step is None) != ("best.safetensors" not in files):
        raise UserError(f"{path}: best.safetensors does not fit state.json")

    tensors = {name: open_tensors(files[name], str(path / name))[0] for name in files if name != "state.json"}
    load_weights(model, tensors["weights.safetensors"], str(path / "weights.safetensors"))
    training.optimizer.load_state_dict(tensors["optimizer.safetensors"], str(path / "optimizer.safetensors"))
    if training.average:
        training.average.load(tensors["average.safetensors"], str(path / "average.safetensors"))
    device = next(model.parameters()).device
    carries = unpack(tensors["carry.safetensors"], state["carry"])
    training.carries = map_state(lambda leaf: leaf.to(device) if hasattr(leaf, "to") else leaf, carries)
    training.counters = counters
    training.best = files.get("best.safetensors")
    training.metrics.truncate(state["metrics"])
    training.samples.truncate(state["samples"])
