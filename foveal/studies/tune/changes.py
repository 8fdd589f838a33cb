"""Step 6: what the curves of a trial say to change in the next."""

from collections.abc import Mapping, Sequence

from foveal.inspection.diagnosis.fit import NOT_CONVERGED, PLATEAU, UNDERFITTING
from foveal.inspection.diagnosis.held_out import OVERFITTING
from foveal.inspection.diagnosis.rate import DIVERGENCE, RATE_TOO_HIGH, RATE_TOO_LOW
from foveal.studies.tune.space import Dimension, value_text

LR, DECAY, DROPOUT = "optimizer.lr", "optimizer.weight_decay", ".dropout"
FACTORS: dict[str, dict[str, float]] = {
    OVERFITTING: {DECAY: 3.0},
    UNDERFITTING: {DECAY: 1 / 3},
    NOT_CONVERGED: {LR: 2.0},
    RATE_TOO_LOW: {LR: 3.0},
    RATE_TOO_HIGH: {LR: 1 / 3},
    DIVERGENCE: {LR: 1 / 3},
    PLATEAU: {LR: 1 / 2},
}
"""By which factor a finding changes a setting."""
ADDED: dict[str, float] = {OVERFITTING: 0.1, UNDERFITTING: -0.1}
"""What a finding adds to dropout."""


def changed_settings(finding: str, values: Mapping[str, float], space: Sequence[Dimension]) -> dict[str, str]:
    """Return the settings that a finding changes, from their present values, within the searched ranges."""
    changed: dict[str, str] = {}
    for dimension in space:
        for key in dimension.keys:
            if (value := _changed(finding, key, values[key], dimension)) != values[key]:
                changed[key] = value_text(value)
    return changed


def _changed(finding: str, key: str, value: float, dimension: Dimension) -> float:
    if key.endswith(DROPOUT):
        moved = value + ADDED.get(finding, 0.0)
    elif key in FACTORS.get(finding, {}):
        moved = max(value, dimension.low) * FACTORS[finding][key]
    else:
        return value
    return min(max(moved, 0.0), dimension.high)
