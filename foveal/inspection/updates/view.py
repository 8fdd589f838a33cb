"""The view `updates` of a run, or of a model before training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from foveal.config.values import MAX_LEARNING_RATE
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.runtime import seed_everything
from foveal.inspection.panels import Lines, Panel, Series, Table
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import (
    InspectedModel,
    InspectedRun,
    InspectedTask,
    own_batch,
    why_no_batch,
)
from foveal.inspection.updates.compute import LayerUpdate, layer_updates
from foveal.inspection.view import ModelView
from foveal.store import checkpoint
from foveal.store.sealed import load_weights
from foveal.store.stored_tensors import open_group
from foveal.training.carry import starting_carry
from foveal.training.optim import Optimizer
from foveal.training.slot_steps import total_loss, total_weights
from foveal.training.snapshot import OPTIMIZER, WEIGHTS

USUAL_RATIO = 1e-3
"""A rule of thumb for the ratio: far above, weights are thrown about; far below, hardly anything is
learned."""
COLUMNS = ("number", "layer", "weights", "|weight|", "|gradient|", "|update|", "ratio")
CAVEAT = (
    "one batch, at the highest rate of the run unless --rate gives another; the dotted line at 0.001 is a "
    ""
    "rule of thumb. Adaptive optimizers take a first step of the same size for every weight"
)


@dataclass(frozen=True)
class UpdatesOptions:
    rate: float | None = None
    """Another learning rate than the highest of the run."""
    data: str | None = None
    """Data for a model without a run, in place of random images."""
    initialization: str | None = None
    """First weights to compare, of a model without a run: 0.01,0.05,xavier,kaiming or some of them."""


@register_view("updates")
class UpdatesView(ModelView[UpdatesOptions]):
    summary = (
        "How much a step of the optimizer changes each layer: |update| / |weight|; also before training."
    )
    Options = UpdatesOptions

    def fits(self, run: InspectedRun) -> str:
        return why_no_batch(run)

    def compute(
        self, run: InspectedRun, options: UpdatesOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        """Replay a step from the newest checkpoint; without one, from the kept weights."""
        path = str(run.run.path)
        if options.initialization or options.data:
            raise UserError(
                f"{path}: a run has its own weights and data: leave out --initialization and --data"
            )
        kept = {name: value.clone() for name, value in run.model.state_dict().items()}
        optimizer = Optimizer(run.model, run.config.optimizer)
        has_checkpoints = run.run.checkpoints.is_dir()  # a run can be copied without them
        newest, _ = checkpoint.load_latest(run.run.checkpoints) if has_checkpoints else (None, [])
        batch = own_batch(run, False, log)
        if batch is None:
            batch = run.task.train_batches(run.training_data(log).train).batch(0, 0)
        try:
            if newest is not None:
                weights, state = (open_group(newest.paths(group)) for group in (WEIGHTS, OPTIMIZER))
                whole = {name: weight.whole() for name, weight in weights.items()}
                load_weights(run.model, whole, str(newest.path / WEIGHTS))
                optimizer.load_state(state, str(newest.path / OPTIMIZER))
            rows = _updates(run.task, batch, optimizer, options.rate)
        finally:
            run.model.load_state_dict(kept)
        name = "the kept weights" if newest is None else f"step {newest.path.name}"
        return _payload(path, {name: rows})

    def compute_untrained(
        self, model: InspectedModel, options: UpdatesOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        """Take the first step of each initialization, on the same batch."""
        names = (options.initialization or model.config.model.initialization).split(",")
        models = model.initialized([name.strip() for name in names], options.data, log)
        rows = {
            name: _updates(task, batch, Optimizer(task.model, task.config.optimizer), options.rate)
            for name, task, batch in models
        }
        return _payload(model.name, rows)


def _updates(task: InspectedTask, batch: Any, optimizer: Optimizer, rate: float | None) -> list[LayerUpdate]:
    if rate is not None and not 0 <= rate <= MAX_LEARNING_RATE:
        raise UserError(f"--rate {rate:g}: expected a number from 0 to {MAX_LEARNING_RATE:g}")
    objective = task.objective()

    def loss() -> Tensor:
        seed_everything(task.config.training.seed, "inspected")
        result, _ = objective(batch, starting_carry(objective, batch, None))
        return total_loss(result, total_weights(objective, [batch]))

    return layer_updates(task.model, optimizer, loss, task.config.optimizer.lr if rate is None else rate)


def _payload(subject: str, rows: Mapping[str, Sequence[LayerUpdate]]) -> Payload:
    """Return the ratios of each model over its layers, and a table for each."""
    longest = max(len(layers) for layers in rows.values())
    series = [
        Series(
            name, range(1, len(layers) + 1), [layer.ratio or float("nan") for layer in layers], "dots", color
        )
        for color, (name, layers) in enumerate(rows.items())
    ]
    series.append(Series("0.001", [1, longest], [USUAL_RATIO, USUAL_RATIO], "dotted", len(rows)))
    panels: list[Panel] = [
        Lines("", tuple(series), "number of the layer", "|update| / |weight|", log_y=True, size=(8.0, 3.6))
    ]
    for name, layers in rows.items():
        lines = (
            (
                str(number),
                layer.layer,
                f"{layer.weights:,}",
                *(f"{size:.3g}" for size in (layer.weight_norm, layer.gradient_norm, layer.update_norm)),
                f"{layer.ratio:.2g}",
            )
            for number, layer in enumerate(layers, 1)
        )
        panels.append(Table(name, COLUMNS, tuple(lines)))
    values = {
        "updates": {
            name: [vars(layer) | {"ratio": layer.ratio} for layer in layers] for name, layers in rows.items()
        }
    }
    title = f"Update over weight of {subject}, layer by layer"
    return Payload("updates", subject, title, tuple(panels), CAVEAT, "recomputed", (), values)
