"""The curves of one training, or of several over each other, as panels, with their diagnosis as facts."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from foveal.inspection.curves.compute import positions, smooth, y_limits
from foveal.inspection.curves.log_records import LoggedTraining, Record
from foveal.inspection.diagnosis.diagnose import MIN_STEPS, RULES
from foveal.inspection.panels import Lines, Panel, Series, Table
from foveal.inspection.payload import Payload

WIDTH, LOSS_HEIGHT, LOW_HEIGHT = 8.0, 3.6, 1.5
"""Inches of the curves."""
LOG_RATIO = 20
"""Rates of several runs that differ by more have a logarithmic axis."""
RATE_COLOR, GRADIENT_COLOR, FIRST_MARK_COLOR = 2, 3, 4
"""The numbers of the colors of a single run's rates and gradients, and of the marks of its findings."""
CAVEAT = (
    "the training loss is that of each step's batch, under dropout and augmentation if there are any; the "
    "smoothed line lags; the start of the training is cut off if it is far above the rest; a diagnosis is a "
    "rule's hint"
)
COMPARED_CAVEAT = "; losses of different data or vocabularies can't be compared"
COLUMNS = ("run", "best held-out loss", "at step", "steps", "minutes", "last training loss", "diagnosis")


def curves_payload(
    training: LoggedTraining, others: Sequence[LoggedTraining] = (), by: str = "step"
) -> Payload:
    """Return the curves of a training, and of others over it. `by` is the number of a step's record on the
    common axis, such as `seconds`.

    Raises: UserError: a line of a log is damaged.
    """
    all_trainings = [training, *others]
    label = {"tokens": training.units.speed_unit, "seconds": "seconds of training"}.get(by, by)
    if by == "step" and not others and training.steps:
        last = training.steps[-1]
        label = f"step (of {last['tokens'] / last['step']:,.0f} {training.units.speed_unit})"
    curves = _losses(all_trainings, by), _gradients(all_trainings, by), _rates(all_trainings, by)
    drawn = [panel for panel in curves if panel.series]
    panels: list[Panel] = [*drawn[:-1], replace(drawn[-1], x_label=label)]
    if others:
        panels.append(Table("", COLUMNS, tuple(_row(each) for each in all_trainings)))
    names = ", ".join(finding.name for finding in training.findings)
    title = " and ".join(each.title for each in all_trainings) if others else training.title
    title = f"{title} · {names}" if names and not others else title
    values = _values(training)
    if others:
        values |= {"others": [{"run": str(each.folder.path)} | _values(each) for each in others]}
    facts = tuple(fact for each in all_trainings for fact in _facts(each, bool(others)))
    caveat = CAVEAT + (COMPARED_CAVEAT if others else "")
    return Payload("curves", training.title, title, tuple(panels), caveat, "exact", facts, values)


def _values(training: LoggedTraining) -> dict[str, list[Record]]:
    records = {kind: training.records[kind] for kind in ("step", "evaluation")}
    return records | {"findings": [finding.to_json() for finding in training.findings]}


def _losses(trainings: Sequence[LoggedTraining], by: str) -> Lines:
    first = trainings[0]
    several = len(trainings) > 1
    series = (
        [line for color, each in enumerate(trainings) for line in _compared_losses(each, by, color)]
        if several
        else [*_loss_series(first, by)]
    )
    label = "loss" if first.units.loss_unit is None else f"loss in nats per {first.units.loss_unit}"
    label = "share of the reward missed" if first.is_rewarded else label
    return Lines("", tuple(series), "", label, limits=y_limits(trainings), size=(WIDTH, LOSS_HEIGHT))


def _loss_series(training: LoggedTraining, by: str) -> Iterator[Series]:
    """Yield the losses of a single training, its best evaluation, and the steps of its findings."""
    x, y = positions(training, training.steps, by), [record["loss"] for record in training.steps]
    yield Series("training, each step", x, y, "faint")
    yield Series("training, smoothed", x, smooth(y))
    if training.best is not None:
        yield _held_out(training, "held out", by, 1)
        suffix = "" if training.is_rewarded or training.units.loss_unit is None else " nats"
        best = training.best
        bits = best.get("bits_per_character")
        in_bits = f" = {bits:.3f} bits per character" if bits else ""
        name = f"best {best['loss']:.3f}{suffix}{in_bits}"
        yield Series(name, positions(training, [best], by), [best["loss"]], "ring", 1)
    for number, finding in enumerate(training.findings):
        at = positions(training, [{"step": finding.step}], by)
        name = f"{finding.name}, step {finding.step:,}"
        yield Series(name, [*at, *at], y_limits([training]) or (0, 0), "dotted", FIRST_MARK_COLOR + number)


def _compared_losses(training: LoggedTraining, by: str, color: int) -> Iterator[Series]:
    """Yield the losses of one of several trainings, in its color."""
    x, y = positions(training, training.steps, by), smooth([record["loss"] for record in training.steps])
    if training.best is None:
        yield Series(f"{training.title}, training", x, y, "line", color)
        return
    yield Series(f"{training.title}, training", x, y, "faint", color)
    yield _held_out(training, f"{training.title}, held out", by, color)


def _held_out(training: LoggedTraining, name: str, by: str, color: int) -> Series:
    losses = [record["loss"] for record in training.evaluations]
    return Series(name, positions(training, training.evaluations, by), losses, "dots", color)


def _gradients(trainings: Sequence[LoggedTraining], by: str) -> Lines:
    """Return the norms of the gradient before clipping, and the largest norm after it."""
    several = len(trainings) > 1
    series = []
    for number, training in enumerate(trainings):
        color = number if several else GRADIENT_COLOR
        logged = [record for record in training.steps if record.get("gradient_norm")]
        if not logged:
            continue
        x, norms = positions(training, logged, by), [record["gradient_norm"] for record in logged]
        if not several:
            series.append(Series("gradient, each step", x, norms, "faint", color))
        series.append(Series("smoothed" if not several else training.title, x, smooth(norms), "line", color))
        limit = training.folder.config.optimizer.clip_norm
        if limit and not several:
            series.append(Series(f"clipped to {limit:g}", [x[0], x[-1]], [limit, limit], "dotted", 1))
    return Lines(
        "", tuple(series), "", "gradient norm", log_y=True, size=(WIDTH, LOW_HEIGHT), legend=not several
    )


def _rates(trainings: Sequence[LoggedTraining], by: str) -> Lines:
    series = []
    for number, training in enumerate(trainings):
        color = number if len(trainings) > 1 else RATE_COLOR
        rates = [record["rate"] for record in training.steps]
        series.append(Series(training.title, positions(training, training.steps, by), rates, "line", color))
    highest = [max(line.y, default=0.0) for line in series]
    is_log = 0 < LOG_RATIO * min(highest) < max(highest)
    limits = None if is_log else (0.0, 1.05 * max(highest) or 1.0)
    return Lines(
        "", tuple(series), "", "rate", log_y=is_log, limits=limits, size=(WIDTH, LOW_HEIGHT), legend=False
    )


def _row(training: LoggedTraining) -> tuple[str, ...]:
    best, last = training.best, training.steps[-1] if training.steps else None
    loss, step = ("", "") if best is None else (f"{best['loss']:.4f}", f"{best['step']:,}")
    length = ("", "") if last is None else (f"{last['step']:,}", f"{_seconds(last) / 60:.1f}")
    end = smooth([record["loss"] for record in training.steps])[-1:]
    names = ", ".join(finding.name for finding in training.findings)
    return training.title, loss, step, *length, f"{end[0]:.4f}" if end else "", names


def _seconds(record: Record) -> float:
    return float(record.get("seconds", math.nan))


def _facts(training: LoggedTraining, several: bool) -> Iterator[tuple[str, str]]:
    """Yield the diagnosis: each finding with its evidence, what would refute it, and what to try."""
    name = f"{training.title}: " if several else ""
    for finding in training.findings:
        yield f"{name}{finding.name}", finding.evidence
        yield "", f"refuted by {finding.refuted_by}"
        yield "", f"try {finding.advice}"
    if not training.findings and len(training.steps) < MIN_STEPS:
        yield f"{name}diagnosis", f"{len(training.steps):,} steps are too few for a diagnosis"
    elif not training.findings:
        yield f"{name}diagnosis", f"none of the {len(RULES)} rules finds a problem"
