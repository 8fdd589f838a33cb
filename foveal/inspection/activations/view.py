"""The view `activations` of a run, or of a model before training with one or several initializations."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.runtime import seed_everything
from foveal.inspection.activations.compute import (
    ActivationStats,
    MeasuredOutput,
    measure_outputs,
    output_statistics,
    unaugmented_batch,
)
from foveal.inspection.activations.panels import activations_payload
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import (
    InspectedModel,
    InspectedRun,
    InspectedTask,
    held_out_examples,
    own_batch,
    why_no_batch,
)
from foveal.inspection.view import ModelView
from foveal.training.carry import starting_carry
from foveal.training.slot_steps import total_loss, total_weights

FIRST, TRAINED = "first weights", "trained"


@dataclass(frozen=True)
class ActivationsOptions:
    data: str | None = None
    """Other data than a run's held-out part; for a model without a run, data in place of random images."""
    initialization: str | None = None
    """First weights to compare, of a model without a run: 0.01,0.05,xavier,kaiming or some of them."""


@register_view("activations")
class ActivationsView(ModelView[ActivationsOptions]):
    summary = "The size of each layer's output, and its saturated and dead shares; also before training."
    Options = ActivationsOptions
    is_default = True

    def fits(self, run: InspectedRun) -> str:
        return why_no_batch(run)

    def compute(
        self, run: InspectedRun, options: ActivationsOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        """Measure a run's first and trained weights, as a training step sees them, on held-out data."""
        path = str(run.run.path)
        if options.initialization:
            raise UserError(f"{path}: a run has its own weights: leave out --initialization")
        batch = own_batch(run, options.data is not None, log)
        if batch is None:
            part, _ = held_out_examples(run, options.data, log)
            batch = unaugmented_batch(run.task.with_smooth_loss(), part)
        measured = [_measured_run(one, batch) for one in (run.with_first_weights(), run)]
        return _result(path, dict(zip((FIRST, TRAINED), output_statistics(measured), strict=True)))

    def compute_untrained(
        self, model: InspectedModel, options: ActivationsOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        """Measure each initialization as the first training step sees it, on the same batch."""
        initializations = (options.initialization or model.config.model.initialization).split(",")
        names = [name.strip() for name in initializations]
        models = model.initialized(names, options.data, log)
        rows = {}
        for name, task, batch in models:
            (rows[name],) = output_statistics([_measured(task, batch)])
        return _result(model.name, rows)


def _result(subject: str, rows: dict[str, list[ActivationStats]]) -> Payload:
    if not all(rows.values()):
        raise UserError(f"{subject}: the model has neither an activation function nor a linear layer")
    return activations_payload(subject, rows)


def _measured_run(run: InspectedRun, batch: Any) -> list[MeasuredOutput]:
    """Return the outputs of a run's model as a step sees them, with gradients through frozen layers, too.

    In evaluation mode, first weights would have the running statistics of no data.
    """
    model, task = run.model, run.task.with_smooth_loss()
    frozen = [parameter for parameter in model.parameters() if not parameter.requires_grad]
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers()]
    model.train()
    model.requires_grad_(True)
    try:
        return _measured(task, batch)
    finally:
        model.eval()
        for parameter in frozen:
            parameter.requires_grad_(False)
        for buffer, value in buffers:
            buffer.copy_(value)


def _measured(task: InspectedTask, batch: Any) -> list[MeasuredOutput]:
    objective = task.objective()

    def loss() -> Tensor:
        seed_everything(task.config.training.seed, "inspected")
        result, _ = objective(batch, starting_carry(objective, batch, None))
        return total_loss(result, total_weights(objective, [batch]))

    return measure_outputs(task.model, loss)
