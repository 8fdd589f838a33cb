"""The view `activations` of a run, or of a model before training with one or several initializations."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.runtime import seed_everything
from foveal.inspection.activations.compute import (
    CAVEAT,
    ActivationStats,
    collect_activations,
    collect_outputs,
    unaugmented_batch,
)
from foveal.inspection.activations.plot import plot_activations
from foveal.inspection.base import InspectedModel, InspectedRun, InspectedTask, ModelView, held_out_examples
from foveal.inspection.registry import register_view
from foveal.metrics.report import format_table
from foveal.training.step import starting_carry, total_loss, total_weights


@dataclass(frozen=True)
class ActivationsOptions:
    data: str | None = None
    """Other data than a run's held-out part; for a model without a run, data in place of random images."""
    initialization: str | None = None
    """First weights to compare, of a model without a run: 0.01,0.05,xavier,kaiming or some of them."""


@dataclass(frozen=True)
class ActivationsResult:
    subject: str
    rows: dict[str, list[ActivationStats]]
    """The layers of each model, by the name of its weights."""

    def to_json(self) -> dict[str, Any]:
        layers = {name: [layer.to_json() for layer in layers] for name, layers in self.rows.items()}
        return {"of": self.subject, "activations": layers}

    def sections(self) -> Iterator[str]:
        for name, layers in self.rows.items():
            yield f"{name}\n{_format_table(layers)}\n"
        yield CAVEAT


@register_view
class ActivationsView(ModelView[ActivationsOptions, ActivationsResult]):
    name = "activations"
    summary = "The size of each layer's output, and its saturated and dead shares; also before training."
    Options = ActivationsOptions
    is_default = True

    def compute(
        self, run: InspectedRun, options: ActivationsOptions, log: Log, progress: ProgressCallback
    ) -> ActivationsResult:
        """Measure a run in evaluation mode on held-out data."""
        path = str(run.run.path)
        if options.initialization:
            raise UserError(f"{path}: a run has its own weights: leave out --initialization")
        part, _ = held_out_examples(run, options.data, log)
        task = run.task.with_smooth_loss()
        frozen = [parameter for parameter in run.model.parameters() if not parameter.requires_grad]
        run.model.requires_grad_(True)  # gradients go through frozen layers, too
        layers = _activations_on_batch(task, unaugmented_batch(task, part))
        for parameter in frozen:
            parameter.requires_grad_(False)
        return _result(path, {"trained": layers})

    def compute_untrained(
        self, model: InspectedModel, options: ActivationsOptions, log: Log, progress: ProgressCallback
    ) -> ActivationsResult:
        """Measure each initialization as the first training step sees it, on the same batch."""
        initializations = (options.initialization or model.config.model.initialization).split(",")
        names = [name.strip() for name in initializations]
        models = model.initialized(names, options.data, log)
        return _result(model.name, {name: _activations_on_batch(task, batch) for name, task, batch in models})

    def plot(self, result: ActivationsResult) -> bytes:
        return plot_activations(result.rows, f"Activations of {result.subject}, layer by layer")


def _result(subject: str, rows: dict[str, list[ActivationStats]]) -> ActivationsResult:
    if not all(rows.values()):
        raise UserError(f"{subject}: the model has neither an activation function nor a linear layer")
    return ActivationsResult(subject, rows)


def _activations_on_batch(task: InspectedTask, batch: Any) -> list[ActivationStats]:
    objective = task.objective()

    def loss() -> Tensor:
        seed_everything(task.config.training.seed, "inspected")
        result, _ = objective(batch, starting_carry(objective, batch, None))
        return total_loss(result, total_weights(objective, [batch]))

    return collect_activations(task.model, loss) or collect_outputs(task.model, loss)


def _format_table(layers: list[ActivationStats]) -> str:
    head = ["layer", "function", "output", "mean", "deviation", "gradient", "saturated", "zeros", "dead"]
    rows = [
        [
            layer.name,
            layer.function,
            "x".join(map(str, layer.shape)),
            *(_format_number(size) for size in (layer.mean, layer.deviation, layer.gradient)),
            *(_format_percent(share) for share in (layer.saturated, layer.zeros, layer.dead)),
        ]
        for layer in layers
    ]
    columns = [column for column in zip(head, *rows, strict=True) if any(column[1:])]
    return format_table(list(zip(*columns, strict=True)))


def _format_number(size: float | None) -> str:
    return "" if size is None else f"{size:.2g}"


def _format_percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"
