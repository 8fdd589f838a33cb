"""The curves of a run: training and held-out loss, and the learning rate."""

import math
from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.inspection.panels import Lines, Series
from foveal.inspection.payload import Payload
from foveal.store.regular_files import read_regular

Record = dict[str, Any]
"""A line of a metrics log."""
DRAWN_NUMBERS = {"step": ("step", "rate", "tokens"), "evaluation": ("step",)}
"""The fields of a record, beside its loss, that curves show."""
SMOOTHING_DIVISOR = 40
"""The smoothed curve averages over about 1/40 of the run."""
IGNORED_START_DIVISOR = 20
"""The first 1/20 of the run does not set the limits of the axis, because it may be far above the rest."""

WIDTH, LOSS_HEIGHT, RATE_HEIGHT = 8.0, 3.6, 1.4
"""Inches of the curves."""
CAVEAT = (
    "the training loss is that of each step's batch, under dropout and augmentation if there are any; the "
    "smoothed line lags; the start of the training is cut off if it is far above the rest"
)


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


def curves_payload(metrics: Path, title: str, unit: str, loss_unit: str | None) -> Payload:
    """Return the curves of the log at `metrics`.

    `unit` is the unit of a step's inputs, such as `characters`. The loss is in nats per `loss_unit`, such as
    `token`; without one it has no unit.

    Raises: UserError: a line of the log is damaged.
    """
    records = {kind: read_metrics_log(metrics, kind) for kind in ("step", "evaluation")}
    steps, held_out = ([one for one in kind if one["loss"] is not None] for kind in records.values())
    rewarded = bool(steps) and "reward" in steps[-1]
    label = "loss" if loss_unit is None else f"loss in nats per {loss_unit}"
    losses = Lines(
        "",
        _loss_series(steps, held_out, "" if rewarded or loss_unit is None else " nats"),
        "step",
        "share of the reward missed" if rewarded else label,
        limits=_y_limits([one["step"] for one in steps], [one["loss"] for one in steps], held_out),
        size=(WIDTH, LOSS_HEIGHT),
    )
    panels = (losses, _rates(steps, unit))
    return Payload("curves", title, title, panels, CAVEAT, "exact", values=records)


def _loss_series(steps: list[Record], held_out: list[Record], loss_suffix: str) -> tuple[Series, ...]:
    x, y = [record["step"] for record in steps], [record["loss"] for record in steps]
    series = (
        Series("training, each step", x, y, "faint"),
        Series("training, smoothed", x, smooth(y)),
    )
    if not held_out:
        return series
    evaluated = [record["step"] for record in held_out], [record["loss"] for record in held_out]
    return (*series, Series("held out", *evaluated, "dots", 1), _best(held_out, loss_suffix))


def _best(held_out: list[Record], loss_suffix: str) -> Series:
    """Return the evaluation with the best loss, with the loss in its name."""
    best = min(held_out, key=lambda record: record["loss"])
    bits = best.get("bits_per_character")
    in_bits = f" = {bits:.3f} bits per character" if bits else ""
    name = f"best {best['loss']:.3f}{loss_suffix}{in_bits}"
    return Series(name, [best["step"]], [best["loss"]], "ring", 1)


def _rates(steps: list[Record], unit: str) -> Lines:
    x, y = [record["step"] for record in steps], [record["rate"] for record in steps]
    per_step = steps[-1]["tokens"] / steps[-1]["step"] if steps else math.nan
    label = f"step (of {per_step:,.0f} {unit})" if steps else "step"
    limits = (0.0, 1.05 * max(y, default=0.0) or 1.0)
    return Lines(
        "", (Series("rate", x, y, "line", 2),), label, "rate", limits=limits, size=(WIDTH, RATE_HEIGHT)
    )


def _y_limits(x: list[int], y: list[float], held_out: list[Record]) -> tuple[float, float] | None:
    """Return limits that show the held-out losses and the smoothed curve, except for the start of
    training; None without steps."""
    if not y:
        return None
    start = len(y) // IGNORED_START_DIVISOR
    evaluated = [record["loss"] for record in held_out if record["step"] >= x[start]]
    high, low = max(smooth(y)[start:] + evaluated), min(y + evaluated)
    margin = 0.05 * (high - low) or 0.1
    return low - margin, high + margin
