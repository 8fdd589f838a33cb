"""All rules of the diagnosis, in their order."""

from collections.abc import Callable
from typing import NamedTuple

from foveal.inspection.diagnosis.finding import Finding
from foveal.inspection.diagnosis.first_weights import FIRST_LOSS, FLAT_START, first_loss, flat_start
from foveal.inspection.diagnosis.fit import (
    NOT_CONVERGED,
    PLATEAU,
    UNDERFITTING,
    not_converged,
    plateau,
    underfitting,
)
from foveal.inspection.diagnosis.held_out import LEAK, OVERFITTING, leak, overfitting
from foveal.inspection.diagnosis.history import History
from foveal.inspection.diagnosis.rate import (
    DIVERGENCE,
    NONFINITE,
    RATE_TOO_HIGH,
    RATE_TOO_LOW,
    divergence,
    nonfinite,
    rate_too_high,
    rate_too_low,
)

MIN_STEPS = 40
"""Steps without which a curve has no shape: two for each compared part."""
ENDINGS = (OVERFITTING, UNDERFITTING, NOT_CONVERGED, PLATEAU)


class Rule(NamedTuple):
    """A rule, and the findings that it explains: they are then not looked for."""

    name: str
    find: Callable[[History], Finding | None]
    explains: tuple[str, ...] = ()


RULES = (
    Rule(NONFINITE, nonfinite),
    Rule(FIRST_LOSS, first_loss),
    Rule(DIVERGENCE, divergence, (RATE_TOO_HIGH, RATE_TOO_LOW, FLAT_START, *ENDINGS)),
    Rule(RATE_TOO_HIGH, rate_too_high, (RATE_TOO_LOW, FLAT_START, *ENDINGS)),
    Rule(RATE_TOO_LOW, rate_too_low, (FLAT_START, *ENDINGS)),
    Rule(FLAT_START, flat_start),
    Rule(LEAK, leak),
    Rule(OVERFITTING, overfitting, ENDINGS),
    Rule(UNDERFITTING, underfitting, (PLATEAU, NOT_CONVERGED)),
    Rule(NOT_CONVERGED, not_converged, (PLATEAU,)),
    Rule(PLATEAU, plateau),
)
NEED_NO_SHAPE = (NONFINITE, FIRST_LOSS)
"""The rules that hold for a training of any length."""


def diagnose(history: History) -> list[Finding]:
    """Return what the rules say about a training, without what another finding explains."""
    findings: list[Finding] = []
    explained: set[str] = set()
    for rule in _rules_for(history):
        finding = None if rule.name in explained else rule.find(history)
        if finding is not None:
            findings.append(finding)
            explained.update(rule.explains)
    return findings


def _rules_for(history: History) -> list[Rule]:
    """Return the rules that can say something: the shape of a curve needs steps, and a loss above 0."""
    if not len(history.loss):
        return [rule for rule in RULES if rule.name == NONFINITE]
    has_shape = len(history.loss) >= MIN_STEPS and history.start > 0
    return [rule for rule in RULES if has_shape or rule.name in NEED_NO_SHAPE]
