"""Statistics of activations as panels: histograms for each model, lines and bars over the layers, tables."""

from collections.abc import Mapping, Sequence

import numpy as np

from foveal.inspection.activations.compute import CAVEAT, ActivationStats, LinearHistogram
from foveal.inspection.activations.record import RECTIFIERS
from foveal.inspection.panels import (
    Axis,
    Bars,
    Histogram,
    Histograms,
    Lines,
    NamedArray,
    Panel,
    Series,
    Table,
)
from foveal.inspection.payload import Payload

MAX_HISTOGRAMS = 10
"""Layers that have a histogram; of more, as many evenly spaced."""
NUMBER = "number of the layer"
StatsByModel = Mapping[str, Sequence[ActivationStats]]
HEAD = (
    "number",
    "layer",
    "function",
    "output",
    "mean",
    "deviation",
    "gradient",
    "saturated",
    "zeros",
    "dead",
)


def activations_payload(subject: str, rows: StatsByModel) -> Payload:
    """Return the statistics of models by the name of their weights. Each model has at least one layer."""
    panels: list[Panel] = []
    for color, (name, layers) in enumerate(rows.items()):
        shown = _evenly_spaced(layers)
        outputs = [(number, layer, layer.histogram) for number, layer in shown]
        slopes = [(n, layer, layer.gradient_histogram) for n, layer in shown if layer.gradient_histogram]
        panels.append(_histograms(name, outputs, color))
        if slopes:
            panels.append(_histograms(f"{name}: gradients", slopes, color))
    panels += [
        Lines("mean (dotted) and deviation", _sizes(rows), NUMBER, log_y=True, legend=False),
        Lines("deviation of the gradient", _gradients(rows), NUMBER, log_y=True, legend=len(rows) > 1),
        *_saturated_or_dead(rows),
        *(_table(name, layers) for name, layers in rows.items()),
    ]
    values = {"activations": {name: [layer.to_json() for layer in layers] for name, layers in rows.items()}}
    title = f"Activations of {subject}, layer by layer"
    return Payload("activations", subject, title, tuple(panels), CAVEAT, "exact", values=values)


def _evenly_spaced(layers: Sequence[ActivationStats]) -> list[tuple[int, ActivationStats]]:
    """Return the layers with a histogram, and their numbers from 1."""
    count = min(MAX_HISTOGRAMS, len(layers))
    numbers = np.linspace(0, len(layers) - 1, count).round().astype(int).tolist()
    return [(number + 1, layers[number]) for number in numbers]


def _histograms(
    name: str, shown: Sequence[tuple[int, ActivationStats, LinearHistogram]], color: int
) -> Histograms:
    """Return histograms of layers, which have the same limits."""
    first = shown[0][2]
    edges = np.linspace(first.low, first.high, len(first.counts) + 1)
    return Histograms(name, edges, tuple(_histogram(*one) for one in shown), color)


def _histogram(number: int, layer: ActivationStats, histogram: LinearHistogram) -> Histogram:
    """Return a histogram of a layer. A rectifier's bin of zero outputs is cut, and their share is noted."""
    name = f"{number} {layer.function}"
    if layer.function not in RECTIFIERS or not layer.zeros or histogram is not layer.histogram:
        return Histogram(name, histogram.counts)
    width = (histogram.high - histogram.low) / len(histogram.counts)
    at_zero = int(np.clip(-histogram.low / width if width else 0, 0, len(histogram.counts) - 1))
    return Histogram(name, histogram.counts, at_zero, f"0: {layer.zeros:.0%}")


def _sizes(rows: StatsByModel) -> tuple[Series, ...]:
    series = []
    for color, (name, layers) in enumerate(rows.items()):
        x = range(1, len(layers) + 1)
        deviations = [_positive(layer.deviation) for layer in layers]
        means = [_positive(abs(layer.mean)) for layer in layers]
        series.append(Series(f"deviation, {name}", x, deviations, "dots", color))
        series.append(Series(f"mean, {name}", x, means, "dotted", color))
    return tuple(series)


def _gradients(rows: StatsByModel) -> tuple[Series, ...]:
    return tuple(
        Series(
            name, range(1, len(layers) + 1), [_positive(layer.gradient) for layer in layers], "dots", color
        )
        for color, (name, layers) in enumerate(rows.items())
    )


def _positive(value: float | None) -> float:
    """Return a value for a logarithmic axis: zero and unknown have no place on it."""
    return value or float("nan")


def _saturated_or_dead(rows: StatsByModel) -> list[Bars]:
    """Return the fractions of saturated or dead units; nothing where no function has such units. A layer has
    at most one of the two."""
    if all(one.saturated is None and one.dead is None for layers in rows.values() for one in layers):
        return []
    shares = np.zeros((len(rows), max(map(len, rows.values()))))
    for row, layers in zip(shares, rows.values(), strict=True):
        row[: len(layers)] = [100 * (layer.saturated or layer.dead or 0.0) for layer in layers]
    array = NamedArray(shares, (Axis("weights", tuple(rows)), Axis("layer")), "%")
    return [Bars("saturated or dead, %", array, 100.0)]


def _table(name: str, layers: Sequence[ActivationStats]) -> Table:
    rows = [
        [
            str(number),
            layer.name,
            layer.function,
            "x".join(map(str, layer.shape)),
            *(_format_number(size) for size in (layer.mean, layer.deviation, layer.gradient)),
            *(_format_percent(share) for share in (layer.saturated, layer.zeros, layer.dead)),
        ]
        for number, layer in enumerate(layers, 1)
    ]
    columns = [column for column in zip(HEAD, *rows, strict=True) if any(column[1:])]
    head, *body = zip(*columns, strict=True)
    return Table(name, head, tuple(body))


def _format_number(size: float | None) -> str:
    return "" if size is None else f"{size:.2g}"


def _format_percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"
