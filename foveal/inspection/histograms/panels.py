"""Statistics of layers over a training as panels: distributions by step, and lines over the steps."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from foveal.inspection.histograms.bins import GRADIENT_BINS, OUTPUT_BINS, SignedBins
from foveal.inspection.histograms.log import Layer, Measurement
from foveal.inspection.panels import Axis, Heatmap, HeatmapGrid, Lines, NamedArray, Panel, Series, Table
from foveal.inspection.payload import Payload

MAX_LAYERS = 8
"""Layers that are drawn if none is chosen; of more, as many evenly spaced. The table has all."""
USUAL_RATIO = 1e-3
CAVEAT = (
    "one small batch of training data, the same at each step, in training mode, its padding counted; bins "
    "grow by a factor, so a high bar far from zero may be thin; saturated: a slope below a tenth of the "
    "steepest; dead: zero for every example; an update ratio near 0.001 (dotted) is a rule of thumb"
)
COLUMNS = ("", "layer", "function", "mean", "deviation", "gradient", "zeros", "saturated", "dead", "NaN, inf")
LINE_SIZE = (8.0, 2.4)
Selector = Callable[[Mapping[str, Any]], Mapping[str, Any] | None]
T = TypeVar("T")


def histograms_payload(subject: str, measured: Sequence[Measurement], chosen: Layer | None) -> Payload:
    """Return the statistics of all layers, or of a chosen one, over the steps. There is a measurement."""
    names = layer_numbers(measured)
    shown = _evenly_spaced([*names]) if chosen is None else [chosen]
    labels = {layer: f"{names[layer]} {layer.function}" for layer in shown}
    panels: list[Panel] = [
        *_distributions("outputs", measured, labels, OUTPUT_BINS, lambda one: one),
        *_distributions("gradients", measured, labels, GRADIENT_BINS, lambda one: one["gradient"]),
        _lines("deviation of outputs", measured, labels, lambda one: one["deviation"]),
        _lines(
            "deviation of gradients", measured, labels, lambda one: (one["gradient"] or {}).get("deviation")
        ),
        *_saturation_lines(measured, labels),
        *(_weights(measured) if chosen is None else ()),
        _newest(measured[-1], names),
    ]
    where = "" if chosen is None else f", layer {names[chosen]}: {chosen.name} {chosen.function}"
    title = f"{subject}: outputs and gradients by layer over {measured[-1].step:,} steps{where}"
    values = {"steps": [one.step for one in measured]}
    return Payload("histograms", subject, title, tuple(panels), CAVEAT, "exact", (*_facts(measured),), values)


def layer_numbers(measured: Sequence[Measurement]) -> dict[Layer, int]:
    """Return the layers in the order of their first calls, with their numbers from 1."""
    layers = dict.fromkeys(layer for one in measured for layer in one.layers)
    return {layer: number for number, layer in enumerate(layers, 1)}


def _evenly_spaced(items: Sequence[T]) -> list[T]:
    places = np.linspace(0, len(items) - 1, min(MAX_LAYERS, len(items))).round().astype(int)
    return [items[place] for place in dict.fromkeys(places.tolist())]


def _distributions(
    title: str, measured: Sequence[Measurement], labels: Mapping[Layer, str], bins: SignedBins, part: Selector
) -> Iterator[Panel]:
    """Yield the share of values in each bin, by step: a map for each layer, the largest values on top."""
    maps = np.stack([_percent_by_step(measured, layer, part) for layer in labels])
    used = np.flatnonzero(np.nan_to_num(maps).any((0, 2)))
    if not len(used):
        return
    rows = slice(used[0], used[-1] + 1)
    of_bins = Axis("value", tuple(_bin_names(bins)[rows]))
    of_steps = Axis("step", tuple(f"{one.step:,}" for one in measured))
    high = float(np.nanmax(maps))
    if len(labels) == 1:
        array = NamedArray(maps[0, rows], (of_bins, of_steps), "% of values")
        yield Heatmap(title, array, 0.0, high)
        return
    axes = (Axis("part", (title,)), Axis("layer", tuple(labels.values())), of_bins, of_steps)
    yield HeatmapGrid(title, NamedArray(maps[None, :, rows], axes, "% of values"), 0.0, high)


def _percent_by_step(measured: Sequence[Measurement], layer: Layer, part: Selector) -> NDArray[np.float64]:
    """Return the percentages of a layer's finite values (65, steps): positive bins from the largest to the
    smallest, zeros, and negative bins. A step without values is NaN."""
    columns = []
    for one in measured:
        numbers = part(one.layers[layer]) if layer in one.layers else None
        counts = np.full(65, np.nan)
        if numbers is not None:
            below, above = np.split(np.array(numbers["counts"], float)[::-1], 2)[::-1]
            counts = np.concatenate([above, [numbers["zeros"]], below])
            counts = 100 * counts / (counts.sum() or math.nan)
        columns.append(counts)
    return np.stack(columns, 1)


def _bin_names(bins: SignedBins) -> list[str]:
    """Return the names of the rows of `_percent_by_step`."""
    edges = [-math.inf, *bins.edges(), math.inf]
    names = [f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges)][::-1]
    return [*names[: len(names) // 2], "0", *names[len(names) // 2 :]]


def _lines(
    title: str,
    measured: Sequence[Measurement],
    labels: Mapping[Layer, str],
    value: Callable[[Mapping[str, Any]], float | None],
) -> Lines:
    """Return a number of each layer over the steps, on a logarithmic axis."""
    steps = [one.step for one in measured]
    series = [
        Series(
            name,
            steps,
            [_positive(value(one.layers[layer])) if layer in one.layers else math.nan for one in measured],
            "dots",
            color,
        )
        for color, (layer, name) in enumerate(labels.items())
    ]
    return Lines("", tuple(series), "step", title, log_y=True, size=LINE_SIZE, legend=len(series) > 1)


def _positive(value: float | None) -> float:
    """Return a value for a logarithmic axis: zero and unknown have no place on it."""
    return value or math.nan


def _saturation_lines(measured: Sequence[Measurement], labels: Mapping[Layer, str]) -> Iterator[Lines]:
    """Yield the percentages of saturated outputs and of dead units of the layers that have any."""
    for title, key in (("saturated, %", "saturated"), ("dead, %", "dead")):
        series = []
        for color, (layer, name) in enumerate(labels.items()):
            shares = [one.layers.get(layer, {}).get(key) for one in measured]
            if any(share is not None for share in shares):
                y = [math.nan if share is None else 100 * share for share in shares]
                series.append(Series(name, [one.step for one in measured], y, "dots", color))
        if series:
            yield Lines("", tuple(series), "step", title, size=LINE_SIZE, legend=len(series) > 1)


def _weights(measured: Sequence[Measurement]) -> Iterator[Lines]:
    """Yield the norms of the gradients of layers' own weights, and their updates over their weights."""
    steps = [one.step for one in measured]
    layers = _evenly_spaced([*dict.fromkeys(layer for one in measured for layer in one.updates)])
    numbers = {layer: color for color, layer in enumerate(layers)}
    norms = [
        Series(layer, steps, [_positive(one.gradient_norms.get(layer)) for one in measured], "dots", color)
        for layer, color in numbers.items()
    ]
    yield Lines("", tuple(norms), "step", "|gradient|, weights", log_y=True, size=LINE_SIZE)
    ratios = [
        Series(layer, steps, [_ratio(one.updates.get(layer, {})) for one in measured], "dots", color)
        for layer, color in numbers.items()
    ]
    usual = Series("0.001", [steps[0], steps[-1]], [USUAL_RATIO, USUAL_RATIO], "dotted", len(layers))
    yield Lines("", (*ratios, usual), "step", "|update| / |weight|", log_y=True, size=LINE_SIZE)


def _ratio(update: Mapping[str, Any]) -> float:
    """Return the size of an update over that of the weights; NaN before the first step."""
    norm, change = update.get("weight_norm"), update.get("update_norm")
    return change / norm if norm and change else math.nan


def _newest(measurement: Measurement, names: Mapping[Layer, int]) -> Table:
    """Return the newest statistics of all layers."""
    rows = []
    for layer, one in measurement.layers.items():
        gradient = one["gradient"] or {}
        sizes = one["mean"], one["deviation"], gradient.get("deviation")
        shares = one["zeros"] / max(1, one["count"]), one["saturated"], one["dead"]
        rows.append(
            (
                *(str(names[layer]), layer.name, layer.function),
                *("" if size is None else f"{size:.2g}" for size in sizes),
                *("" if share is None else f"{100 * share:.1f} %" for share in shares),
                f"{one['nan'] + gradient.get('nan', 0):,}, {one['infinite'] + gradient.get('infinite', 0):,}",
            )
        )
    return Table(f"step {measurement.step:,}", COLUMNS, tuple(rows))


def _facts(measured: Sequence[Measurement]) -> Iterator[tuple[str, str]]:
    yield "measured", f"{len(measured)} times, last after step {measured[-1].step:,}"
    for one in measured:
        for layer, numbers in one.layers.items():
            if numbers["nan"] or numbers["infinite"]:
                counts = f"{numbers['nan']:,} NaN and {numbers['infinite']:,} infinite outputs"
                yield "not finite", f"step {one.step:,}, {layer.name} {layer.function}: {counts}"
                return
