"""The statistics of a model's layers that a training logs at some of its steps."""

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from foveal.config import AugmentConfig, Config
from foveal.core.runtime import autocast, seed_everything
from foveal.inspection.activations.record import (
    concatenated,
    dead_fraction,
    gradients,
    record_outputs,
    saturated_fraction,
)
from foveal.inspection.histograms.bins import GRADIENT_BINS, OUTPUT_BINS, SignedBins
from foveal.inspection.run_protocols import InspectedTask
from foveal.training.carry import starting_carry
from foveal.training.layer_statistics import LayerProbe
from foveal.training.slot_steps import total_loss, total_weights

MAX_ROWS, MAX_CONTEXT, TOKENS_SHARE = 16, 64, 8
"""The probed batch has at most this number of images or series, tokens in a row of a corpus, and this part of
a training batch's tokens: then a measurement takes less time than a step."""


def layer_probe(task: InspectedTask, data: Any) -> LayerProbe:
    """Return the function that measures the model of `task` in training mode, on a small batch of `data` that
    is the same each time."""
    config, objective = task.config, task.objective()
    batches: list[Any] = []

    def loss() -> Tensor:
        seed_everything(config.training.seed, "statistics")
        # Gradients in float16 would need the factor of the loss.
        precision = "float32" if config.training.precision == "float16" else config.training.precision
        with autocast(next(task.model.parameters()).device, precision):
            result, _ = objective(batches[0], starting_carry(objective, batches[0], None))
        return total_loss(result, total_weights(objective, batches))

    def probe() -> dict[str, Any]:
        if not batches:
            batches.append(task.with_config(_small(config)).train_batches(data).batch(0, 0))
        task.model.train()
        return measure_layers(task.model, loss)

    return probe


def _small(config: Config) -> Config:
    """Return the config with small batches without augmentation."""
    data = config.data
    context = min(data.context_length, MAX_CONTEXT)
    sizes = {
        "augment": AugmentConfig(),
        "context_length": context,
        "batch_tokens": max(context, data.batch_tokens // TOKENS_SHARE),
        "image": data.image.model_copy(update={"batch_size": min(data.image.batch_size, MAX_ROWS)}),
        "series": data.series.model_copy(update={"batch_size": min(data.series.batch_size, MAX_ROWS)}),
    }
    return config.model_copy(update={"data": data.model_copy(update=sizes)})


def measure_layers(model: nn.Module, loss: Callable[[], Tensor]) -> dict[str, Any]:
    """Return the statistics of the outputs of each layer and of their gradients, and the norm of the gradient
    of each layer's own weights, while `loss()` runs the model on a batch. `loss` returns a scalar."""
    weights = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    value, recorded = record_outputs(model, loss)
    of_outputs, of_weights = gradients(value, recorded, [*weights.values()])
    layers = []
    for (site, outputs), slopes in zip(recorded.items(), of_outputs, strict=True):
        x = concatenated(outputs)
        layers.append(
            {"layer": site.layer, "function": site.function, "shape": [*site.shape]}
            | tensor_statistics(x, OUTPUT_BINS)
            | {"saturated": saturated_fraction(site.function, x), "dead": dead_fraction(site.function, x)}
            | {"gradient": tensor_statistics(concatenated(slopes), GRADIENT_BINS) if slopes else None}
        )
    norms = _norms(dict(zip(weights, of_weights, strict=True)))
    return {"loss": float(value.detach()), "layers": layers, "gradients": norms}


def tensor_statistics(x: Tensor, bins: SignedBins) -> dict[str, Any]:
    """Return mean, standard deviation and histogram of the finite values of a tensor. Zeros, NaN and
    infinities are counted apart."""
    finite = x.isfinite()
    inside = x if bool(finite.all()) else x[finite]
    none, nan = float("nan"), int(x.isnan().sum())
    return {
        "count": x.numel(),
        "mean": float(inside.mean()) if inside.numel() else none,
        "deviation": float(inside.std(correction=0)) if inside.numel() else none,
        "zeros": int((x == 0).sum()),
        "nan": nan,
        "infinite": x.numel() - int(finite.sum()) - nan,
        "counts": bins.counts(x).tolist(),
    }


def _norms(gradients: dict[str, Tensor | None]) -> dict[str, float]:
    """Return the Euclidean norm of the gradient of each layer's own weights."""
    norms: dict[str, list[float]] = {}
    for name, gradient in gradients.items():
        if gradient is not None:
            norms.setdefault(name.rpartition(".")[0], []).append(float(gradient.norm()))
    return {layer: math.hypot(*parts) for layer, parts in norms.items()}
