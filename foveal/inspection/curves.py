"""The curves of a run: training and held-out loss, and the learning rate."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.inspection.style import FAINT_COLOR, figure_png, new_figure, series_color
from foveal.store.regular_files import read_regular

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Record = dict[str, Any]
"""A line of a metrics log."""
DRAWN_NUMBERS = {"step": ("step", "rate", "tokens"), "evaluation": ("step",)}
"""The fields of a record, beside its loss, that curves show."""
SMOOTHING_DIVISOR = 40
"""The smoothed curve averages over about 1/40 of the run."""
IGNORED_START_DIVISOR = 20
"""The first 1/20 of the run does not set the limits of the axis, because it may be far above the rest."""


def read_metrics_log(path: Path, kind: str) -> list[Record]:
    """Return the records of one kind in a metrics.jsonl.

    Raises: UserError: a line is damaged.
    """
    records = []
    for number, line in enumerate(read_regular(path).splitlines(), 1):
        try:
            record = parse_json(line)
            known = _has_numbers(record)
        except (ValueError, TypeError, LookupError):
            known = False
        if not known:
            raise UserError(f"{path}, line {number}: damaged, so the run has no curves; restore the file")
        if record["kind"] == kind:
            records.append(record)
    return records


def _has_numbers(record: Record) -> bool:
    """Return whether the fields that curves show are numbers. A loss that was not finite is None."""
    numbers = [record[name] for name in DRAWN_NUMBERS.get(record["kind"], ())]
    return all(type(number) in (int, float) for number in numbers) and (
        not numbers or (record["step"] > 0 and type(record["loss"]) in (int, float, type(None)))
    )


def smooth(values: list[float]) -> list[float]:
    """Return the exponential moving average, corrected for its start (Kingma and Ba 2015, section 3)."""
    decay = 1 - 1 / max(1.0, len(values) / SMOOTHING_DIVISOR)
    average, result = 0.0, []
    for count, value in enumerate(values, 1):
        average = decay * average + (1 - decay) * value
        result.append(average / (1 - decay**count))
    return result


def plot_curves(metrics: Path, title: str, unit: str, loss_unit: str | None) -> bytes:
    """Return the PNG of the log at `metrics`.

    `unit` is the unit of a step's inputs, such as `characters`. The loss is in nats per `loss_unit`, such as
    `token`; without one it has no unit.
    """
    steps = [record for record in read_metrics_log(metrics, "step") if record["loss"] is not None]
    held_out = [record for record in read_metrics_log(metrics, "evaluation") if record["loss"] is not None]
    figure = new_figure(8.0, 4.8, "constrained")
    losses, rates = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    rewarded = bool(steps) and "reward" in steps[-1]
    _plot_losses(losses, steps, held_out, "" if rewarded or loss_unit is None else " nats")
    loss = "loss" if loss_unit is None else f"loss in nats per {loss_unit}"
    losses.set_ylabel("share of the reward missed" if rewarded else loss)
    losses.set_title(title, loc="left")
    _plot_rates(rates, steps, unit)
    return figure_png(figure)


def _plot_losses(axes: "Axes", steps: list[Record], held_out: list[Record], loss_suffix: str) -> None:
    x, y = [record["step"] for record in steps], [record["loss"] for record in steps]
    axes.plot(x, y, color=FAINT_COLOR, linewidth=0.6, label="training, each step")
    axes.plot(x, smooth(y), color=series_color(0), linewidth=1.4, label="training, smoothed")
    if held_out:
        _plot_held_out(axes, held_out, loss_suffix)
    if y:
        axes.set_ylim(*_y_limits(x, y, held_out))
    else:
        axes.text(0.5, 0.5, "no training steps", transform=axes.transAxes, ha="center")
    axes.grid(alpha=0.25)
    axes.legend(loc="upper right", frameon=False)


def _plot_held_out(axes: "Axes", held_out: list[Record], loss_suffix: str) -> None:
    """Draw the losses of evaluations, with a ring around the best, whose loss is in the legend."""
    x, y = [record["step"] for record in held_out], [record["loss"] for record in held_out]
    color = series_color(1)
    best = min(held_out, key=lambda record: record["loss"])
    bits = best.get("bits_per_character")
    in_bits = f" = {bits:.3f} bits per character" if bits else ""
    label = f"held out, best {best['loss']:.3f}{loss_suffix}{in_bits}"
    axes.plot(x, y, color=color, marker="o", markersize=3.5, label=label)
    axes.plot(best["step"], best["loss"], color=color, marker="o", markersize=9, fillstyle="none")


def _plot_rates(axes: "Axes", steps: list[Record], unit: str) -> None:
    from matplotlib.ticker import MaxNLocator

    x, y = [record["step"] for record in steps], [record["rate"] for record in steps]
    axes.plot(x, y, color=series_color(2), linewidth=1.2)
    axes.set_ylabel("rate")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    per_step = steps[-1]["tokens"] / steps[-1]["step"] if steps else math.nan
    axes.set_xlabel(f"step (of {per_step:,.0f} {unit})" if steps else "step")


def _y_limits(x: list[int], y: list[float], held_out: list[Record]) -> tuple[float, float]:
    """Return limits that show the held-out losses and the smoothed curve, except for the start of
    training."""
    start = len(y) // IGNORED_START_DIVISOR
    evaluated = [record["loss"] for record in held_out if record["step"] >= x[start]]
    high, low = max(smooth(y)[start:] + evaluated), min(y + evaluated)
    margin = 0.05 * (high - low) or 0.1
    return low - margin, high + margin
