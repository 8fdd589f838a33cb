"""Statistics of activations as a picture: a row of histograms for each model, and lines over the layers."""

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from foveal.inspection.activations.compute import CAVEAT, RECTIFIERS, ActivationStats
from foveal.inspection.style import MUTED_COLOR, figure_png, new_figure, series_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LETTERS_PER_INCH = 18
"""Letters of the smallest font that fit in an inch."""
MAX_HISTOGRAMS = 10
"""Layers that have a histogram; of more, as many evenly spaced."""
StatsByModel = Mapping[str, Sequence[ActivationStats]]


def plot_activations(rows: StatsByModel, title: str) -> bytes:
    """Return the PNG of models by name. Each model has at least one layer."""
    columns = max(min(MAX_HISTOGRAMS, len(layers)) for layers in rows.values())
    figure = new_figure(max(9.0, 1.3 * columns), 1.5 * len(rows) + 3.6, "constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    parts: Any = figure.subfigures(2, 1, height_ratios=[1.5 * len(rows), 3.3])
    above, below = parts
    grid = above.subplots(len(rows), columns, squeeze=False)
    for number, (panels, (name, layers)) in enumerate(zip(grid, rows.items(), strict=True)):
        _histogram_row(panels, layers, series_color(number))
        panels[0].set_ylabel(name, fontsize=9, color=series_color(number))
    sizes, gradients, shares = below.subplots(1, 3)
    _lines(sizes, rows, "mean (dotted) and deviation", "deviation", "mean")
    _lines(gradients, rows, "deviation of the gradient", "gradient")
    _bars(shares, rows)
    width = int(LETTERS_PER_INCH * figure.get_figwidth())
    figure.supxlabel(fill(CAVEAT, width), x=0.01, ha="left", fontsize=7, color=MUTED_COLOR)
    return figure_png(figure)


def _histogram_row(panels: Any, layers: Sequence[ActivationStats], color: str) -> None:
    """Draw the histograms of a model's layers. If there are too many layers, draw an evenly spaced
    selection."""
    count = min(MAX_HISTOGRAMS, len(layers))
    shown = np.linspace(0, len(layers) - 1, count).round().astype(int).tolist()
    for panel, number in zip(panels, shown, strict=False):
        _histogram(panel, layers[number], number + 1, color)
    for panel in panels[count:]:
        panel.set_axis_off()


def _histogram(axes: "Axes", layer: ActivationStats, number: int, color: str) -> None:
    """Draw a layer's histogram. A rectifier's bin of zeros is cut off above the others and labeled with its
    fraction."""
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
    for number, (name, layers) in enumerate(rows.items()):
        x, color = range(1, len(layers) + 1), series_color(number)
        y = [getattr(layer, solid) or np.nan for layer in layers]  # zero has no place on this axis
        axes.plot(x, y, color=color, marker=".", linewidth=1.2, label=name)
        if dotted:
            mean = [abs(getattr(layer, dotted)) or np.nan for layer in layers]
            axes.plot(x, mean, color=color, linewidth=0.8, linestyle=":")
    axes.set_yscale("log")
    axes.set_title(title, loc="left", fontsize=9)
    _layer_axis(axes, rows)
    axes.tick_params(which="both", labelsize=7)
    axes.grid(alpha=0.25)
    if len(rows) > 1 and solid == "deviation":
        axes.legend(frameon=False, fontsize=7)


def _layer_axis(axes: "Axes", rows: StatsByModel) -> None:
    """Let the axis show whole numbers of layers, also that of a single layer."""
    from matplotlib.ticker import MaxNLocator

    axes.set_xlim(0.5, max(map(len, rows.values())) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel("layer", fontsize=8)


def _bars(axes: "Axes", rows: StatsByModel) -> None:
    """Draw the fractions of saturated or dead units, models side by side. A layer has at most one of the two
    fractions."""
    width = 0.8 / len(rows)
    for number, layers in enumerate(rows.values()):
        x = np.arange(1, len(layers) + 1) - 0.4 + width * (number + 0.5)
        shares = [layer.saturated or layer.dead or 0.0 for layer in layers]
        axes.bar(x, [100 * share for share in shares], width, color=series_color(number))
    axes.set_title("saturated or dead, %", loc="left", fontsize=9)
    axes.set_ylim(0, 100)
    _layer_axis(axes, rows)
    axes.tick_params(which="both", labelsize=7)
    axes.grid(alpha=0.25, axis="y")
