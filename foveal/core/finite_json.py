"""JSON has neither NaN nor infinities: in everything that is written for programs they become null."""

import math
from typing import Any


def finite_json(value: Any) -> Any:
    """Return a JSON value in which each number that is not finite, at any depth, is None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite_json(part) for key, part in value.items()}
    return [*map(finite_json, value)] if isinstance(value, list | tuple) else value
