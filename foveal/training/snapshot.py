"""The complete state of a run between two steps, and its conversion to files.

The position in the data, the schedule and the random generators are functions of the step, so only the step
is stored for them.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.state import State, map_state, unpack
from foveal.distributed.placement import Placement
from foveal.store.checkpoint import Checkpoint
from foveal.store.dataclass_tables import dataclass_from_dict, dataclass_to_dict
from foveal.store.durable import Chunk
from foveal.store.metrics_log import LogPosition, MetricsLog
from foveal.store.plan import Plan, Plans
from foveal.store.sealed import open_json
from foveal.store.stored_tensors import open_group
from foveal.training.averaging import WeightAverage
from foveal.training.loss_scaling import LossScaling
from foveal.training.optim import Optimizer
from foveal.training.placed_weights import load_placed_weights
from foveal.training.protocols import PlacedBatches

WEIGHTS, OPTIMIZER, AVERAGE, CARRY, PLACE = "weights", "optimizer", "average", "carry", "batches"
"""The groups of tensors of a checkpoint. Those of `batches` say the place in batches that are read in
order."""
PLACE_FILE = "batches.json"
BEST_FILE = "best.safetensors"
"""The content of model.safetensors, if it has the best weights."""
FORMAT_WITH_LOG_HASHES = 2
"""The first format of checkpoints with hashes of the logs."""


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
    """Why training is finished: `budget`, `patience` or `callback`. Empty while training is not finished."""

    def to_record(self) -> dict[str, Any]:
        """Return what callbacks get at the end of training."""
        return {
            "step": self.step,
            "seconds": self.seconds,
            "reason": self.finish_reason,
            "best_step": self.best_step,
            "best_loss": self.best_loss,
        }


@dataclass
class TrainingState:
    """Everything that a step reads or changes, except the model's weights."""

    optimizer: Optimizer
    average: WeightAverage | None
    carries: list[State]
    metrics: MetricsLog
    samples: MetricsLog
    statistics: MetricsLog | None = None
    """The log of layer statistics; runs of older versions have none."""
    batches: PlacedBatches | None = None
    """The training batches, if a checkpoint has to store the place in them."""
    scaling: LossScaling | None = None
    plans: Plans = field(default_factory=Plans)
    best: Sequence[Chunk] | None = None
    """Content of model.safetensors with the best weights, after the first evaluation. It belongs to the
    thread that writes the files."""
    counters: TrainingCounters = field(default_factory=TrainingCounters)
    rounding: str = ""
    """Why the last bits of steps in this process may differ; empty if the run alone determines them."""

    @property
    def plan(self) -> Plan | None:
        """The plan that counts now; None if there is no plan yet."""
        return self.plans.newest

    @property
    def logs(self) -> dict[str, MetricsLog]:
        """The logs by name, whose lengths and hashes a checkpoint stores."""
        logs = {"metrics": self.metrics, "samples": self.samples, "statistics": self.statistics}
        return {name: log for name, log in logs.items() if log is not None}

    def close_logs(self, at_end: ExitStack) -> None:
        """Close the logs at the end of a context."""
        for log in self.logs.values():
            at_end.callback(log.close)

    @property
    def position(self) -> int:
        """The number of micro-batches of all steps so far."""
        return self.counters.step * len(self.carries)


class StoredState(BaseModel):
    """The content of state.json."""

    model_config = ConfigDict(strict=True)

    run: str
    progress: dict[str, Any]
    plan: dict[str, Any] | None
    metrics: NonNegativeInt
    samples: NonNegativeInt
    statistics: NonNegativeInt | None = None
    log_sha256: dict[str, str] = {}
    """Hashes of the logs up to these lengths; checkpoints of older versions have none."""
    loss_scaling: dict[str, Any] | None = None
    """The factor of the loss, of runs in float16."""
    carry: Any


def state_facts(training: TrainingState, run: str, carry: Any) -> dict[str, Any]:
    """Return the content of state.json. `run` is the fingerprint of the run, and `carry` the skeleton of the
    carries."""
    positions = {name: log.position() for name, log in training.logs.items()}
    state = {
        "run": run,
        "progress": dataclass_to_dict(training.counters),
        "plan": training.plan and dataclass_to_dict(training.plan),
        **{name: position.length for name, position in positions.items()},
        "log_sha256": {name: position.sha256 for name, position in positions.items()},
        "carry": carry,
    }
    if training.scaling:
        state["loss_scaling"] = dataclass_to_dict(training.scaling)
    return state


def from_files(
    training: TrainingState, model: nn.Module, placement: Placement, run: str, checkpoint: Checkpoint
) -> State:
    """Restore the state from a checkpoint, in place. Its carries are those of all rows.

    Return the place in the batches, to which the caller goes, if the checkpoint has one.

    Raises: UserError: a file is missing or does not match the run.
    """
    path, files = checkpoint.path, checkpoint.files
    needed = [WEIGHTS, OPTIMIZER, CARRY, *([AVERAGE] if training.average else [])]
    missing = [f"{group}.safetensors" for group in needed if not checkpoint.paths(group)]
    missing += [] if "state.json" in files else ["state.json"]
    if missing:
        raise UserError(f"{path}: no {', '.join(sorted(missing))}; restore the checkpoint")

    name = str(path / "state.json")
    state = _read_state(files["state.json"].read(), name)
    logs = {"metrics": state.metrics, "samples": state.samples, "statistics": state.statistics}
    lengths = {name: length for name, length in logs.items() if length is not None}
    if checkpoint.format >= FORMAT_WITH_LOG_HASHES and state.log_sha256.keys() != lengths.keys():
        raise UserError(f"{name}: log_sha256 is not that of a checkpoint; restore the checkpoint")
    if state.run != run:
        raise UserError(f"{path}: a checkpoint of another run; move it away")
    plan = state.plan and dataclass_from_dict(Plan, state.plan, name)
    if plan and plan not in training.plans.plans:
        raise UserError(f"{path}: made with another plan.json than the current one; restore that plan.json")
    counters = dataclass_from_dict(TrainingCounters, state.progress, name)
    if (counters.best_step is None) != (BEST_FILE not in files):
        raise UserError(f"{path}: {BEST_FILE} does not match state.json; restore the checkpoint")

    if lost_logs := lengths.keys() - training.logs.keys():
        lost = path.parents[1] / f"{lost_logs.pop()}.jsonl"
        raise UserError(f"{lost}: missing, but its checkpoint has lines of it; restore the file")
    if (training.scaling is None) != (state.loss_scaling is None):
        raise UserError(f"{name}: loss_scaling does not match training.precision; restore the checkpoint")

    weights, optimizer = (open_group(checkpoint.paths(group)) for group in (WEIGHTS, OPTIMIZER))
    load_placed_weights(model, placement, weights, str(path / f"{WEIGHTS}.safetensors"))
    training.optimizer.load_state(optimizer, str(path / f"{OPTIMIZER}.safetensors"))
    if training.average:
        average = open_group(checkpoint.paths(AVERAGE))
        training.average.load(average, str(path / f"{AVERAGE}.safetensors"))
    device = next(model.parameters()).device
    try:
        carries = unpack(_read_whole(checkpoint, CARRY), state.carry)
    except (ValueError, TypeError, AttributeError, KeyError):
        raise UserError(f"{name}: its carry does not fit carry.safetensors; restore the checkpoint") from None
    training.carries = map_state(lambda leaf: leaf.to(device) if hasattr(leaf, "to") else leaf, carries)
    training.counters = counters
    if state.loss_scaling is not None:
        training.scaling = dataclass_from_dict(LossScaling, state.loss_scaling, name)
    training.best = [files[BEST_FILE].read()] if BEST_FILE in files else None
    for name, log in training.logs.items():
        log.truncate(LogPosition(lengths.get(name, 0), state.log_sha256.get(name)))
    return _read_place(checkpoint)


def read_counters(checkpoint: Checkpoint) -> TrainingCounters:
    """Return the counters in a checkpoint.

    Raises: UserError: they are not those of a checkpoint.
    """
    name = str(checkpoint.path / "state.json")
    if "state.json" not in checkpoint.files:
        raise UserError(f"{checkpoint.path}: no state.json; restore the checkpoint")
    state = _read_state(checkpoint.files["state.json"].read(), name)
    return dataclass_from_dict(TrainingCounters, state.progress, name)


def _read_place(checkpoint: Checkpoint) -> State:
    """Return the place in the batches; None in a checkpoint without it."""
    if PLACE_FILE not in checkpoint.files or not checkpoint.paths(PLACE):
        return None
    content = checkpoint.files[PLACE_FILE].read()
    return unpack(
        _read_whole(checkpoint, PLACE), open_json(content, str(checkpoint.path / PLACE_FILE))["place"]
    )


def _read_whole(checkpoint: Checkpoint, group: str) -> dict[str, Tensor]:
    return {name: value.whole() for name, value in open_group(checkpoint.paths(group)).items()}


def _read_state(content: bytes, name: str) -> StoredState:
    try:
        return StoredState.model_validate(open_json(content, name))
    except ValidationError as error:
        field = ".".join(map(str, error.errors()[0]["loc"]))
        raise UserError(f"{name}: {field} is not that of a checkpoint; restore the checkpoint") from None
