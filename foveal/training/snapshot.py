"""The complete state of a run between two steps, and its conversion to files.

The position in the data, the schedule and the random generators are functions of the step, so only the step
is stored for them.
"""

from dataclasses import dataclass, field
from pathlib import Path

from torch import nn

from foveal.core.errors import UserError
from foveal.core.state import State, map_state, pack, unpack
from foveal.store.metrics_log import JsonlLog
from foveal.store.plan import Plan
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


@dataclass
class TrainingCounters:
    """Counters of training. The `key` of a field is its name in state.json.

    `seconds` is the time in training steps alone.
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    skipped_steps: int = field(default=0, metadata={"key": "refused"})
    """Consecutive skipped steps."""
    last_eval_step: int = field(default=0, metadata={"key": "evaluated"})
    """The step of the last evaluation."""
    last_preview_step: int = field(default=-1, metadata={"key": "previewed"})
    """The step of the last preview. The preview of step 0 shows the untrained model."""
    best_step: int | None = None
    best_loss: float | None = None
    evals_without_improvement: int = field(default=0, metadata={"key": "stale"})
    """Evaluations since the best evaluation."""
    finish_reason: str = field(default="", metadata={"key": "finished"})
    """Why training is finished, `budget` or `patience`. Empty while training is not finished."""


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
    """Content of model.safetensors with the best weights, after the first evaluation."""
    counters: TrainingCounters = field(default_factory=TrainingCounters)


def to_files(training: TrainingState, model: nn.Module, run: str) -> dict[str, bytes]:
    """Return the files of a checkpoint. `run` is the fingerprint of their run."""
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
    """Restore the state from the files of `to_files`, in place.

    Raises: UserError: a file is missing or does not match the run.
    """
    needed = {"state.json", "weights.safetensors", "optimizer.safetensors", "carry.safetensors"}
    if training.average:
        needed.add("average.safetensors")
    if missing := needed - files.keys():
        raise UserError(f"{path}: no {', '.join(sorted(missing))}; restore the checkpoint")

    state = open_json(files["state.json"], str(path / "state.json"))
    if state["run"] != run:
        raise UserError(f"{path}: a checkpoint of another run; remove it")
    name = str(path / "state.json")
    plan = state["plan"] and dataclass_from_dict(Plan, state["plan"], name)
    if plan and plan != training.plan:
        raise UserError(f"{path}: made with another plan.json than the current one; restore that plan.json")
    counters = dataclass_from_dict(TrainingCounters, state["progress"], name)
    if (counters.best_step is None) != ("best.safetensors" not in files):
        raise UserError(f"{path}: best.safetensors does not match state.json; restore the checkpoint")

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
