"""The curves of a run: loss while training and held out, and the learning rate."""

import io
import json
import math
from pathlib import Path
from typing import Any

from foveal.store.durable import atomic_write

SMOOTHING_DIVISOR = 40
"""The smoothed curve looks back over about this part of the run: 1/40."""
IGNORED_START_DIVISOR = 20
"""The first 1/20 may fall from far above the rest."""


def read_metrics_log(path: Path, kind: str) -> list[dict[str, Any]]:
    """The records of one kind in a metrics.jsonl."""
    with path.open(encoding="utf-8") as lines:
        records = (json.loads(line) for line in lines)
        return [record for record in records if record["kind"] == kind]


def smooth(values: list[float]) -> list[float]:
    """The exponential moving average, corrected for its start (Kingma and Ba 2015, section 3)."""
    decay = 1 - 1 / max(1.0, len(values) / SMOOTHING_DIVISOR)
    average, result = 0.0, []
    for count, value in enumerate(values, 1):
        average = decay * average + (1 - decay) * value
        result.append(average / (1 - decay**count))
    return result


def plot_curves(metrics: Path, path: Path, title: str, unit: str, loss_unit: str) -> None:
    """Draw the log at `metrics` into the PNG at `path`; `unit` names what a step reads (`characters`), and
    `loss_unit` of what there is a loss (`token`)."""
    from matplotlib.figure import Figure

    steps = [record for record in read_metrics_log(metrics, "step") if record["loss"] is not None]
    held_out = [record for record in read_metrics_log(metrics, "evaluation") if record["loss"] is not None]
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    losses, rates = figure.subplots(2, 1, sharex=True, height_ratios=[4, 1])
    x = [record["step"] for record in steps]
    y = [record["loss"] for record in steps]
    losses.plot(x, y, color="#b8c4d6", linewidth=0.6, label="training, each step")
    losses.plot(x, smooth(y), color="#1f4e8c", linewidth=1.4, label="training, smoothed")
    rewarded = bool(steps) and "reward" in steps[-1]
    nats = "" if rewarded else " nats"
    if held_out:
        best = min(held_out, key=lambda record: record["loss"])
        bits = best.get("bits_per_character")
        losses.plot(
            [record["step"] for record in held_out],
            [record["loss"] for record in held_out],
            color="#c2410c",
            marker="o",
            markersize=3.5,
            label="held out",
        )
        losses.annotate(
            f"best {best['loss']:.3f}{nats}" + (f"\n= {bits:.3f} bits per character" if bits else ""),
            (best["step"], best["loss"]),
            xytext=(-8, 36),
            textcoords="offset points",
            ha="right",
            arrowprops={"arrowstyle": "-", "color": "#c2410c"},
        )
    if y:
        losses.set_ylim(*_y_limits(x, y, held_out))
    losses.set_ylabel("share of the reward missed" if rewarded else f"loss in nats per {loss_unit}")
    losses.set_title(title, loc="left")
    losses.grid(alpha=0.25)
    losses.legend(loc="upper right", frameon=False)
    rates.plot(x, [record["rate"] for record in steps], color="#4d7c0f", linewidth=1.2)
    rates.set_ylabel("rate")
    rates.set_ylim(bottom=0)
    rates.grid(alpha=0.25)
    per_step = steps[-1]["tokens"] / steps[-1]["step"] if steps else math.nan
    rates.set_xlabel(f"step (of {per_step:,.0f} {unit})" if steps else "step")
    content = io.BytesIO()
    figure.savefig(content, dpi=130)
    atomic_write(path, content.getvalue())


def _y_limits(x: list[int], y: list[float], held_out: list[dict[str, Any]]) -> tuple[float, float]:
    """What is drawn: all that was held out and the smoothed curve, but for how a training begins."""
    begun = len(y) // IGNORED_START_DIVISOR
    told = [record["loss"] for record in held_out if record["step"] >= x[begun]]
    high, low = max(smooth(y)[begun:] + told), min(y + told)
    margin = 0.05 * (high - low) or 0.1
    return low - margin, high + margin
