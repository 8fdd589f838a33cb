"""The operations, the time and the cost of a whole training, for people and for programs."""

import math
from typing import Any

from foveal.studies.plan.plan import Plan
from foveal.studies.plan.published import PublishedModel
from foveal.studies.plan.training_length import TrainingLength
from foveal.ui.console import format_duration

Facts = list[tuple[str, str]]
HOUR, DAY = 3600, 86400
SAME = 0.01
"""Two trainings that differ by less are shown once: a budget in tokens is rounded up to whole steps."""


def training_sections(plan: Plan, published: PublishedModel | None, price: float | None) -> list[str | Facts]:
    """Return the training as published, and that of the settings if it is another. `price` is that of a
    device for an hour."""
    theirs, own = published.training if published else None, plan.training
    sections: list[str | Facts] = []
    if theirs:
        sections += ["\nthe training as published", _facts(plan, theirs, price)]
    if own and not (theirs and math.isclose(own.tokens, theirs.tokens, rel_tol=SAME)):
        sections += ["\nthe training of these settings", _facts(plan, own, price)]
    return sections


def training_json(plan: Plan, published: PublishedModel | None, price: float | None) -> dict[str, Any]:
    """Return both trainings for programs, where they are known."""
    lengths = {"published": published.training if published else None, "settings": plan.training}
    return {which: _values(plan, length, price) for which, length in lengths.items() if length}


def _values(plan: Plan, length: TrainingLength, price: float | None) -> dict[str, Any]:
    seconds = length.tokens / plan.tokens_per_second
    values = {"tokens": length.tokens, "flops": plan.flops_per_token * length.tokens, "seconds": seconds}
    return values if price is None else {**values, "cost": price * plan.layout.ranks * seconds / HOUR}


def _facts(plan: Plan, length: TrainingLength, price: float | None) -> Facts:
    values, unit = _values(plan, length, price), plan.unit
    way = f" ({length.reckoning})" if length.reckoning else ""
    reckoned = f"; the paper reckons {length.flops:.3g}{way}" if length.flops else ""
    seconds, devices = values["seconds"], plan.layout.ranks
    days = f"{seconds / DAY:,.1f} days" if seconds >= DAY else format_duration(seconds)
    hours = f"{_amount(seconds * devices / HOUR)} device hours"
    cost = [] if price is None else [("cost", f"{_amount(values['cost'])}, at {price:,g} an hour")]
    return [
        (unit, f"{length.tokens:,} ({length.source})"),
        ("operations", f"{values['flops']:.3g} FLOP, {flops_of_each(plan)}{reckoned}"),
        ("time", f"{days} on {devices:,} x {plan.hardware.name}, {hours}"),
        *cost,
    ]


def flops_of_each(plan: Plan) -> str:
    """Return the operations of a training for a token or an image, in words."""
    unit = plan.unit.removesuffix("s")
    article = "an" if unit[0] in "aeiou" else "a"
    return f"{plan.flops_per_token / 1e9:,.2f} GFLOP {article} {unit}"


def _amount(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
