"""Statistics of activations as a picture: histograms by layer, a row for each model; lines over layers."""

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from foveal.inspection.activations.compute import CAVEAT, RECTIFIERS, ActivationStats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_HISTOGRAMS = 10
"""Layers that have a histogram; of more, as many evenly spaced."""
MODEL_COLORS = ("#1f4e8c", "#c2410c", "#4d7c0f", "#7c3aed", "#0f766e", "#a16207")
MUTED_COLOR = "#52606d"
StatsByModel = Mapping[str, Sequence[ActivationStats]]


def plot_activations(rows: StatsByModel, title: str) -> bytes:
    """The PNG's content; each of `rows` is a model with its name, none without layers."""
    from matplotlib.figure import Figure

    columns = max(min(MAX_HISTOGRAMS, len(layers)) for layers in rows.values())
    figure = Figure(figsize=(max(9, 1.3 * columns), 1.5 * len(rows) + 3.6), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    parts: Any = figure.subfigures(2, 1, height_ratios=[1.5 * len(rows), 3.3])
    above, below = parts
    grid = above.subplots(len(rows), columns, squeeze=False)
    for axes, (name, layers), colour in zip(grid, rows.items(), _model_colors(rows), strict=True):
        chosen = (
            np.linspace(0, len(layers) - 1, min(MAX_HISTOGRAMS, len(layers))).round().astype(int).tolist()
        )
        for panel, number in zip(axes, chosen, strict=False):
            _histogram(panel, layers[number], number + 1, colour)
        for panel in axes[len(chosen) :]:
            panel.set_axis_off()
        axes[0].set_ylabel(name, fontsize=9, color=colour)
    sizes, gradients, shares = below.subplots(1, 3)
    _lines(sizes, rows, "mean (dotted) and deviation", "deviation", "mean")
    _lines(gradients, rows, "deviation of the gradient", "gradient")
    _bars(shares, rows)
    figure.supxlabel(CAVEAT, x=0.01, ha="left", fontsize=7, color=MUTED_COLOR)
    content = io.BytesIO()
    figure.savefig(content, dpi=130)
    return content.getvalue()


def _model_colors(rows: StatsByModel) -> list[str]:
    return [MODEL_COLORS[place % len(MODEL_COLORS)] for place in range(len(rows))]


def _histogram(axes: "Axes", layer: ActivationStats, number: int, color: str) -> None:
    """The bin of a rectifier's zeros is cut a little above the others, and its share said."""
    counts, width = np.array(layer.counts, float), (layer.high - layer.low) / len(layer.counts)
    left = layer.low + width * np.arange(len(counts))
    axes.bar(left, counts, width or 1.0, align="edge", color=color)
    if layer.function in RECTIFIERS and layer.zeros:
        at_zero = int(np.clip(-layer.low / width if width else 0, 0, len(counts) - 1))
        others = np.delete(counts, at_zero).max()
        axes.set_ylim(0, 1.3 * others or None)
        axes.text(0.96, 0.95, f"0: {layer.zeros:.0%}", transform=axes.transAxes, ha="right", va="top", size=7)
    axes.set_title(f"{number} {layer.function}", fontsize=8, color=MUTED_COLOR)
    axes.set_yticks([])
    axes.tick_params(labelsize=6, length=2)
    axes.spines[["top", "left", "right"]].set_visible(False)


def _lines(axes: "Axes", rows: StatsByModel, title: str, solid: str, dotted: str | None = None) -> None:
    from matplotlib.ticker import MaxNLocator

    for (name, layers), colour in zip(rows.items(), _model_colors(rows), strict=True):
        x = range(1, len(layers) + 1)
        y = [getattr(layer, solid) or np.nan for layer in layers]  # zero has no place on this axis
        axes.plot(x, y, color=colour, marker=".", linewidth=1.2, label=name)
        if dotted:
            mean = [abs(getattr(layer, dotted)) or np.nan for layer in layers]
            axes.plot(x, mean, color=colour, linewidth=0.8, linestyle=":")
    axes.set_yscale("log")
    axes.set_title(title, loc="left", fontsize=9)
    axes.set_xlabel("layer", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.25)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(rows) > 1 and solid == "deviation":
        axes.legend(frameon=False, fontsize=7)


def _bars(axes: "Axes", rows: StatsByModel) -> None:
    """Saturated or dead shares, beside each other; a layer has one of the two, or none."""
    from matplotlib.ticker import MaxNLocator

    each = 0.8 / len(rows)
    for place, (layers, colour) in enumerate(zip(rows.values(), _model_colors(rows), strict=True)):
        x = np.arange(1, len(layers) + 1) - 0.4 + each * (place + 0.5)
        shares = [layer.saturated or layer.dead or 0.0 for layer in layers]
        axes.bar(x, [100 * share for share in shares], each, color=colour)
    axes.set_title("saturated (sigmoid, tanh) or dead (rectifiers), %", loc="left", fontsize=9)
    axes.set_ylim(0, 100)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("layer", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.25, axis="y")
