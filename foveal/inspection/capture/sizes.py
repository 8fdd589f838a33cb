"""Sizes in bytes: of a budget, of what is kept, and in messages."""

import math
import re
from collections.abc import Mapping

from foveal.core.errors import UserError
from foveal.ui.console import format_bytes

UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
MAX_NAMES = 8
"""Names that a message lists."""


def parse_size(size: str | int) -> int:
    """Return the bytes of a size such as `256MB`, `1.5 GiB`, or a number.

    Raises: UserError: it is no size.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(size).lower())
    unit = match and UNITS.get(match[2] or "b")
    if not match or not unit:
        raise UserError(f"budget={size!r} is no size: write a number of bytes, or such as '256MB' or '2GiB'")
    return math.floor(float(match[1]) * unit)


def over_budget(sizes: Mapping[str, int], budget: int) -> UserError:
    """Return the error for values that are larger than the budget, with their sizes by name."""
    largest = sorted(sizes.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{name} {format_bytes(size)}" for name, size in largest[:MAX_NAMES])
    more = f", and {len(largest) - MAX_NAMES} more" if len(largest) > MAX_NAMES else ""
    total = f"{format_bytes(sum(sizes.values()))}, more than the budget of {format_bytes(budget)}"
    advice = "capture fewer names, a shorter input, or give a larger budget="
    return UserError(f"the values take {total}, so none is kept: {advice}; sizes: {listed}{more}")
