"""Statistics of a model's activations and their gradients on a batch, layer by layer.

They show whether signals and gradients keep their scale from layer to layer (LeCun et al. 1998; Glorot and
Bengio 2010, figures 2 to 8).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from foveal.config import AugmentConfig
from foveal.inspection.activations.record import (
    RECTIFIERS,
    CallSite,
    concatenated,
    dead_fraction,
    gradients,
    record_outputs,
    saturated_fraction,
)
from foveal.inspection.run_protocols import InspectedTask

HISTOGRAM_BINS = 64
HISTOGRAM_STDS = 5
"""Standard deviations that a histogram reaches to both sides of the mean."""
CAVEAT = (
    "one batch, its padding counted; gradient: of its mean loss; saturated: a slope below a tenth of the "
    "steepest; dead: zero for every example, each place of a map counted; a rectifier's bin at zero is "
    "cut in the picture"
)


@dataclass(frozen=True)
class LinearHistogram:
    """Counts in bins of equal width from `low` to `high`. Values beyond count in the first or last bin."""

    low: float
    high: float
    counts: tuple[int, ...]


@dataclass(frozen=True)
class ActivationStats:
    """Statistics of the outputs of an activation function, or of a block, for a batch.

    `name` is the layer before the function: the last module with its own parameters that ran. `shape` is the
    shape of a single example. Fractions are None where they have no meaning: `saturated` belongs to sigmoid
    and tanh, `zeros` and `dead` (units that are zero for every example) to rectifiers. `gradient` is the
    standard deviation of the loss's gradient, None if there is no gradient. The limits of histograms are the
    same for all layers.
    """

    name: str
    function: str
    shape: tuple[int, ...]
    mean: float
    deviation: float
    gradient: float | None
    saturated: float | None
    zeros: float | None
    dead: float | None
    histogram: LinearHistogram
    gradient_histogram: LinearHistogram | None

    def to_json(self) -> dict[str, Any]:
        """Return the fields; numbers that are not finite are None."""
        fields = asdict(self)
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in fields.items()}


class MeasuredOutput(NamedTuple):
    """The outputs of a call site for a batch, and their gradients."""

    site: CallSite
    values: Tensor
    gradient: Tensor | None


def measure_outputs(model: nn.Module, loss: Callable[[], Tensor]) -> list[MeasuredOutput]:
    """Return the outputs of `model` while `loss()` runs it on a batch, in the order of calls.

    `loss` returns a scalar. The first axis of every activation is the batch axis. The model's running
    statistics change as in any forward pass.
    """
    value, recorded = record_outputs(model, loss)
    slopes, _ = gradients(value, recorded)
    return [
        MeasuredOutput(site, concatenated(tensors), concatenated(slope) if slope else None)
        for (site, tensors), slope in zip(recorded.items(), slopes, strict=True)
    ]


def collect_activations(model: nn.Module, loss: Callable[[], Tensor]) -> list[ActivationStats]:
    """Return the statistics of `model` while `loss()` runs it on a batch, as `measure_outputs` does."""
    (statistics,) = output_statistics([measure_outputs(model, loss)])
    return statistics


def output_statistics(models: Sequence[Sequence[MeasuredOutput]]) -> list[list[ActivationStats]]:
    """Return the statistics of the layers of several models. All histograms of outputs have the same limits,
    and so have those of gradients."""
    outputs = [one for layers in models for one in layers]
    limits = _common_range(one.values for one in outputs)
    of_gradients = _common_range(one.gradient for one in outputs if one.gradient is not None)
    return [[_statistics(one, limits, of_gradients) for one in layers] for layers in models]


def unaugmented_batch(task: InspectedTask, data: Any) -> Any:
    """Return a batch of `data` without augmentation, in random order, since data may be sorted by class."""
    plain = task.config.data.model_copy(update={"augment": AugmentConfig()})
    return task.with_config(task.config.model_copy(update={"data": plain})).train_batches(data).batch(0, 0)


Range = tuple[float, float]


def _statistics(output: MeasuredOutput, limits: Range, of_gradients: Range) -> ActivationStats:
    site, x, slopes = output
    return ActivationStats(
        *site,
        float(x.mean()),
        _std(x),
        None if slopes is None else _std(slopes),
        saturated_fraction(site.function, x),
        float((x == 0).float().mean()) if site.function in RECTIFIERS else None,
        dead_fraction(site.function, x),
        _histogram(x, limits),
        None if slopes is None else _histogram(slopes, of_gradients),
    )


def _histogram(x: Tensor, limits: Range) -> LinearHistogram:
    clipped = x[x.isfinite()].clamp(*limits)
    return LinearHistogram(*limits, tuple(map(int, torch.histc(clipped, HISTOGRAM_BINS, *limits))))


def _common_range(tensors: Iterable[Tensor]) -> Range:
    ranges = [_range(x) for x in tensors]
    return min((low for low, _ in ranges), default=0.0), max((high for _, high in ranges), default=0.0)


def _range(x: Tensor) -> Range:
    """Return the smallest and largest finite value, at most `HISTOGRAM_STDS` standard deviations from the
    mean."""
    x = x[x.isfinite()]
    if not x.numel():
        return 0.0, 0.0
    mean, radius = float(x.mean()), HISTOGRAM_STDS * _std(x)
    return max(float(x.min()), mean - radius), min(float(x.max()), mean + radius)


def _std(x: Tensor) -> float:
    return float(x.std(correction=0))
