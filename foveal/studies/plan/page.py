"""A plan as a page: its sections as tables, and its parts as bars."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from foveal.inspection.panels import Axis, Bars, NamedArray, Panel, Table
from foveal.inspection.payload import Payload
from foveal.ui.console import Sections


def plan_payload(
    name: str, sections: Sections, bars: Sequence[Bars], caveat: str, values: dict[str, Any]
) -> Payload:
    """Return a plan as bars, and as a table of each section. The first section has the verdict and the facts,
    each other one a title and its rows."""
    verdict, facts, *others = sections
    tables: list[Panel] = [
        Table(str(title).strip(), ("part", "amount"), tuple(rows))
        for title, rows in zip(others[::2], others[1::2], strict=True)
        if not isinstance(rows, str)
    ]
    shown = () if isinstance(facts, str) else tuple(facts)
    return Payload(
        "plan", name, str(verdict).strip(), (*bars, *tables), caveat, "approximated", shown, values
    )


def part_bars(title: str, parts: Mapping[str, float], unit: str) -> Bars:
    """Return a bar for each part of memory or of time, in an order of its own."""
    axes = Axis("amount", (unit,)), Axis("part", tuple(parts))
    return Bars(title, NamedArray(np.array([[*parts.values()]], float), axes, unit))
