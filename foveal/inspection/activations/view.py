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
    collect_activations,
    collect_outputs,
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
from foveal.training.step import starting_carry, total_loss, total_weights


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
        """Measure a run in evaluation mode on held-out data."""
        path = str(run.run.path)
        if options.initialization:
            raise UserError(f"{path}: a run has its own weights: leave out --initialization")
        task, batch = run.task.with_smooth_loss(), own_batch(run, options.data is not None, log)
        if batch is None:
            part, _ = held_out_examples(run, options.data, log)
            batch = unaugmented_batch(task, part)
        frozen = [parameter for parameter in run.model.parameters() if not parameter.requires_grad]
        run.model.requires_grad_(True)  # gradients go through frozen layers, too
        layers = _activations_on_batch(task, batch)
        for parameter in frozen:
            parameter.requires_grad_(False)
        return _result(path, {"trained": layers})

    def compute_untrained(
        self, model: InspectedModel, options: ActivationsOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        """Measure each initialization as the first training step sees it, on the same batch."""
        initializations = (options.initialization or model.config.model.initialization).split(",")
        names = [name.strip() for name in initializations]
        models = model.initialized(names, options.data, log)
        return _result(model.name, {name: _activations_on_batch(task, batch) for name, task, batch in models})


def _result(subject: str, rows: dict[str, list[ActivationStats]]) -> Payload:
    if not all(rows.values()):
        raise UserError(f"{subject}: the model has neither an activation function nor a linear layer")
    return activations_payload(subject, rows)


def _activations_on_batch(task: InspectedTask, batch: Any) -> list[ActivationStats]:
    objective = task.objective()

    def loss() -> Tensor:
        seed_everything(task.config.training.seed, "inspected")
        result, _ = objective(batch, starting_carry(objective, batch, None))
        return total_loss(result, total_weights(objective, [batch]))

    return collect_activations(task.model, loss) or collect_outputs(task.model, loss)
