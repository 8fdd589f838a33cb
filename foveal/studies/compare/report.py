"""A comparison for people, for programs, and as a page."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from foveal.inspection.panels import Lines, Panel, Series, Table
from foveal.inspection.payload import Payload
from foveal.studies.compare.comparison import Comparison, Cost
from foveal.studies.compare.conclusions import conclusions, loss_text, p_text, verdict
from foveal.studies.compare.results import ModelResult

WIDE, CURVE_POINTS = (6.4, 3.4), 60
"""Inches of the pictures, and points of a curve."""
COSTS: dict[Cost, str] = {"seconds": "seconds of training", "flops": "FLOPs of training"}
"""The costs that the loss is drawn against, and the names of their axes."""
FAR = 10
"""The ratio of costs from which their axis is logarithmic."""
HIDDEN_SCORES = ("loss", "perplexity")
"""Scores without a column of their own. The perplexity is that of the loss."""


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return the comparison for programs."""
    return {
        "run": None if comparison.folder is None else str(comparison.folder),
        "data": comparison.data,
        "facts": dict(comparison.facts),
        "split": comparison.split,
        "verdict": verdict(comparison),
        "conclusions": conclusions(comparison),
        "models": [_model_json(model) for model in comparison.models],
        "differences": [
            {
                "first": each.first,
                "second": each.second,
                "difference": each.mean.value,
                "interval": [each.mean.low, each.mean.high],
                "p_value": each.p_value,
                "verdict": each.verdict,
            }
            for each in comparison.differences
        ],
        **({} if comparison.sequences is None else comparison.sequences.to_json()),
        "fronts": {cost: [model.name for model in comparison.front(cost)] for cost in COSTS},
    }


def _model_json(model: ModelResult) -> dict[str, Any]:
    loss = model.loss
    means = {"loss": model.mean("loss"), "seconds": model.seconds, "flops": model.flops} if model.runs else {}
    return {
        "model": model.name,
        "preset": model.plan.preset,
        "width": model.plan.width,
        "lr": model.plan.lr,
        "parameters": model.plan.parameters,
        "flops_per_token": model.plan.flops,
        "step_bytes": model.plan.memory,
        **means,
        "interval": None if loss is None else [loss.low, loss.high],
        "runs": [
            {
                "run": str(run.path),
                "seed": run.seed,
                "steps": run.steps,
                "tokens": run.tokens,
                "seconds": run.seconds,
                "scores": dict(run.scores),
            }
            for run in model.runs
        ],
        "errors": {str(seed): error for seed, error in model.errors.items()},
    }


def comparison_payload(comparison: Comparison) -> Payload:
    """Return the comparison as tables and pictures."""
    panels: list[Panel] = [_models_table(comparison), _differences_table(comparison)]
    panels += [*(_pareto(comparison, cost) for cost in COSTS), _curves(comparison), _runs_table(comparison)]
    panels += [] if comparison.sequences is None else comparison.sequences.panels()
    not_measured = [] if comparison.sequences is None else comparison.sequences.facts()
    return Payload(
        "compare",
        comparison.data,
        f"{comparison.data}: {verdict(comparison)}",
        tuple(panels),
        comparison.caveat,
        "exact",
        (("conclusions", conclusions(comparison)), *comparison.facts, *not_measured),
        comparison_json(comparison),
    )


def _models_table(comparison: Comparison) -> Table:
    """Return what each model is, what it took, and its scores, the best first."""
    runs = [run for model in comparison.trained for run in model.runs]
    measured = [name for name in runs[0].scores if all(name in run.scores for run in runs)]
    shown = [name for name in measured if name not in HIDDEN_SCORES]
    columns = ("model", "width", "rate", "parameters", "FLOPs", "memory", comparison.speed_unit, "training")
    rows = []
    for model in comparison.trained:
        loss = model.loss
        interval = "" if loss is None else f"{loss_text(loss.low)} to {loss_text(loss.high)}"
        plan = model.plan
        facts = plan.name, plan.width, f"{plan.lr:g}", f"{plan.parameters:,}", f"{model.flops:.3g}"
        costs = f"{plan.memory / 1e6:,.1f} MB", f"{model.tokens:,.0f}", _seconds_text(model.seconds)
        scores = (f"{model.mean(name):.4f}" for name in shown)
        rows.append((*facts, *costs, f"{model.count:,}", loss_text(model.mean("loss")), interval, *scores))
    title = f"{comparison.split} loss in {comparison.loss_unit}, mean over {comparison.noun}s"
    return Table(title, (*columns, f"{comparison.noun}s", "loss", "95 % interval", *shown), tuple(rows))


def _differences_table(comparison: Comparison) -> Table:
    rows = tuple(
        (
            f"{each.first} - {each.second}",
            f"{each.mean.value:+.4f}",
            f"{each.mean.low:+.4f} to {each.mean.high:+.4f}",
            p_text(each.p_value),
            each.verdict,
        )
        for each in comparison.differences
    )
    columns = ("pair", "loss", "95 % interval", "corrected", "verdict")
    return Table(f"paired differences over {comparison.noun}s", columns, rows)


def _runs_table(comparison: Comparison) -> Table:
    """Return each training, with its loss or why it failed."""
    rows: list[tuple[str, str, str, str]] = []
    for model in comparison.models:
        done = {
            run.seed: (f"{run.steps:,}", _seconds_text(run.seconds), loss_text(run.loss))
            for run in model.runs
        }
        failed = {seed: ("failed", "", error) for seed, error in model.errors.items()}
        rows += [(f"{model.name}, seed {seed}", *cells) for seed, cells in sorted((done | failed).items())]
    return Table("trainings", ("run", "steps", "training", "loss"), tuple(rows))


def _pareto(comparison: Comparison, cost: Cost) -> Lines:
    """Return loss against a cost, with a point for each run, and the front of the means as a stair."""
    points = [
        Series(model.name, *_points(model, cost), "points", number)
        for number, model in enumerate(comparison.models)
    ]
    front = comparison.front(cost)
    x = [getattr(model, cost) for model in front for _ in range(2)][1:]
    y = [model.mean("loss") for model in front for _ in range(2)][:-1]
    stair = Series("front of the means", x, y, "dotted", len(points))
    title = f"{comparison.split} loss against {COSTS[cost]}, a point for each run"
    is_far = x[-1] > FAR * x[0]
    return Lines(title, (*points, stair), COSTS[cost], _loss_label(comparison), log_x=is_far, size=WIDE)


def _points(model: ModelResult, cost: Cost) -> tuple[list[float], list[float]]:
    """Return the cost and the loss of each run."""
    costs = [run.seconds if cost == "seconds" else model.plan.flops * run.tokens for run in model.runs]
    return costs, [run.loss for run in model.runs]


def _curves(comparison: Comparison) -> Lines:
    """Return the validation loss by tokens: the mean over seeds, and the range."""
    series = [each for number, model in enumerate(comparison.models) for each in _mean_curve(model, number)]
    title, x = "validation loss: mean and range of the runs", f"{comparison.speed_unit} trained on"
    return Lines(title, tuple(series), x, _loss_label(comparison), size=WIDE)


def _mean_curve(model: ModelResult, color: int) -> Iterator[Series]:
    curves = [np.array(run.curve).T for run in model.runs if run.curve]
    if not curves:
        return
    ends = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    at = np.unique(np.linspace(*ends, CURVE_POINTS)) if len(curves) > 1 else curves[0][0]
    losses = np.array([np.interp(at, x, y) for x, y in curves])
    band = losses.min(0).tolist(), losses.max(0).tolist()
    yield Series(model.name, at.tolist(), losses.mean(0).tolist(), "line", color, band)


def _loss_label(comparison: Comparison) -> str:
    return f"loss in {comparison.loss_unit}"


def _seconds_text(seconds: float) -> str:
    """Return a duration, as tables and sentences write it."""
    return f"{seconds:,.1f} s"
