"""The pictures of a study: losses at each rate, overfitted rows, trials, and random against grid."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np

from foveal.inspection.curves.log_records import read_metrics_log
from foveal.inspection.panels import Lines, Panel, Series
from foveal.studies.tune.space import Dimension

if TYPE_CHECKING:  # whose methods return the report
    from foveal.studies.tune.tune import Tuning

WIDE = (8.0, 3.2)
HALF = (3.9, 3.2)
"""Inches of a picture over the whole width, and of one of two side by side."""
COLORS = 6
"""Curves of different colors; others are dotted."""
OWN, OTHER, GRID = 0, 1, 2
"""The numbers of colors: of what was set or is best, of the rest, and of a grid."""


def study_figures(tuning: "Tuning") -> list[Panel]:
    """Return the pictures of a study."""
    return [*_sweep(tuning), _by_heart(tuning), _curves(tuning), *_random_and_grid(tuning)]


def _sweep(tuning: "Tuning") -> Iterator[Panel]:
    sweep = tuning.checks.rates
    curves = tuple(
        Series(
            f"{rate.lr:.2g}", range(1, len(rate.losses) + 1), _with_gaps(rate.losses), _look(number), number
        )
        for number, rate in enumerate(sweep.rates)
    )
    finite = [loss for loss in sweep.best.losses if math.isfinite(loss)]
    limits = (0.0, 1.2 * max(finite)) if min(finite) > 0 else None
    yield Lines("step 3: loss at each rate", curves, "iteration", "loss", limits=limits, size=WIDE)
    rates, losses = [rate.lr for rate in sweep.rates], [rate.end for rate in sweep.rates]
    ends = Series("end", rates, _with_gaps(losses), "dots", OWN)
    own = sweep.of_set_lr
    marked = Series("as given", [own.lr], _with_gaps([own.end]), "ring", OTHER)
    yield Lines("loss after the sweep", (ends, marked), "learning rate", "loss", log_x=True, size=HALF)


def _by_heart(tuning: "Tuning") -> Panel:
    losses = tuning.checks.overfit.losses
    curve = Series("loss", range(1, len(losses) + 1), _with_gaps(losses), "line", OWN)
    title = "step 2: overfitting a few rows"
    return Lines(title, (curve,), "iteration", "loss", size=HALF)


def _curves(tuning: "Tuning") -> Panel:
    """Return the held-out losses of refined trials and new seeds."""
    winner, series = tuning.verdict.winner, list[Series]()
    for number, trial in enumerate(each for each in tuning.trials if each.phase != "coarse"):
        log = tuning.folder / trial.name / "metrics.jsonl"
        records = read_metrics_log(log)["evaluation"] if log.exists() else []
        points = [(record["step"], record["loss"]) for record in records if record["loss"] is not None]
        style = "dots" if trial == winner else "line"
        series.append(Series(trial.name, [x for x, _ in points], [y for _, y in points], style, number))  # type: ignore[arg-type]
    title = f"step 6: held-out losses; {winner.name} is recommended"
    return Lines(title, tuple(series), "step", "held-out loss", size=WIDE)


def _random_and_grid(tuning: "Tuning") -> Iterator[Panel]:
    """Yield the drawn trials by their two first settings, over a grid of as many, which has few values of
    each (Bergstra and Bengio 2012)."""
    drawn = [each for each in tuning.trials if (each.phase, each.origin) == ("coarse", "drawn")]
    losses = [math.nan if each.loss is None else each.loss for each in drawn]
    numbers = [dimension for dimension in tuning.space if not dimension.choices]
    if np.isfinite(losses).sum() < 2 or len(numbers) < 2:
        return
    first, second = numbers[:2]
    x, y = ([float(trial.settings[each.name]) for trial in drawn] for each in (first, second))
    side, best = max(2, round(math.sqrt(len(drawn)))), int(np.nanargmin(losses))
    xs, ys = (_grid_values(dimension, side) for dimension in (first, second))
    points = (
        Series(f"{len(drawn)} random trials", x, y, "points", OWN),
        Series(f"grid: {side} values of each", [*np.repeat(xs, side)], [*np.tile(ys, side)], "ring", GRID),
        Series("best", [x[best]], [y[best]], "dots", OTHER),
    )
    title, names = "step 4: random against grid", (first.name, second.name)
    yield Lines(title, points, *names, log_x=first.is_log, log_y=second.is_log, size=HALF)
    limits = [float(np.nanmin(losses)), float(np.nanmax(losses))]
    lines = [Series("rate of the grid", [value, value], limits, "dotted", GRID) for value in xs]
    random = Series("random trials", x, losses, "points", OWN)
    title, labels = "loss by rate; dotted: those of the grid", (first.name, "held-out loss")
    yield Lines(title, (random, *lines), *labels, log_x=first.is_log, size=HALF, legend=False)


def _grid_values(dimension: Dimension, count: int) -> list[float]:
    """Return the centers of equal parts of a range."""
    shares = [(number + 0.5) / count for number in range(count)]
    if dimension.is_log:
        return [float(dimension.low * (dimension.high / dimension.low) ** share) for share in shares]
    return [dimension.low + share * (dimension.high - dimension.low) for share in shares]


def _look(number: int) -> Literal["line", "dotted"]:
    return "line" if number < COLORS else "dotted"


def _with_gaps(values: "list[float] | tuple[float, ...]") -> list[float]:
    """Return values of a curve, which has gaps where they are not finite."""
    return [value if math.isfinite(value) else math.nan for value in values]
