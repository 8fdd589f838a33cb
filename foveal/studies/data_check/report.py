"""A check of data for people, for programs, and as a page."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from foveal.core.terminal_text import counted
from foveal.inspection.panels import (
    Axis,
    Bars,
    Caption,
    Histogram,
    Histograms,
    ImageRow,
    Images,
    NamedArray,
    Panel,
    Table,
    Tile,
)
from foveal.inspection.payload import Payload
from foveal.inspection.style import cut_text
from foveal.studies.data_check.finding import Finding

if TYPE_CHECKING:  # whose methods return the report
    from foveal.studies.data_check.check import DataCheck

SHOWN_ROWS, TABLE_ROWS = 3, 20
"""Rows of a finding in a terminal, and in a table of the page."""
MAX_CLASSES, BINS = 50, 40
"""Classes that are drawn, and bins of lengths."""
MAX_CHARACTERS, MAX_NAME = 160, 20
TILES_PER_ROW = 6
FAR = 10
"""Times the median from which on the longest source makes the axis of lengths logarithmic."""
CAVEAT = (
    "rows are compared, not understood: data without findings can still be wrong. Nearly equal texts of under"
    " 8 words are not looked for, and a few pairs of longer ones are missed. If there are too many rows to "
    "compare all, a note says how many were compared"
)


def verdict(check: "DataCheck") -> str:
    """Return the result in one line."""
    sizes = ", ".join(f"{split} {size:,}" for split, size in check.sizes.items())
    rows = f"{counted(sum(check.sizes.values()), 'row')} ({sizes}), read for {check.task}"
    if not check.findings:
        return f"{check.name}: nothing found in {rows}"
    kinds = (check.problems, "problem"), (check.notes, "note")
    counts = " and ".join(counted(len(findings), kind) for findings, kind in kinds if findings)
    return f"{check.name}: {counts} in {rows}"


def check_sections(check: "DataCheck") -> list[str | list[tuple[str, str]]]:
    """Return the verdict, and then each finding with its first rows and with what to do."""
    sections: list[str | list[tuple[str, str]]] = [verdict(check)]
    for finding in check.findings:
        more = finding.count - SHOWN_ROWS
        rows = [cut_text(row, MAX_CHARACTERS) for row in finding.rows[:SHOWN_ROWS]]
        rows += (
            [f"and {more:,} more (--json has {len(finding.rows):,} of them)"]
            if finding.rows and more > 0
            else []
        )
        facts = [("found", finding.message), *(("", row) for row in rows), ("advice", finding.advice)]
        sections += [f"\n{finding.severity}: {finding.check}", facts]
    return sections


def check_json(check: "DataCheck") -> dict[str, Any]:
    """Return the check for programs."""
    return {
        "data": check.name,
        "task": check.task,
        "rows": dict(check.sizes),
        "problems": len(check.problems),
        "notes": len(check.notes),
        "findings": [finding.to_json() for finding in check.findings],
        "classes": {label: [*counts] for label, counts in check.class_counts.items()},
    }


def check_payload(check: "DataCheck") -> Payload:
    """Return the check as tables and pictures."""
    panels: list[Panel] = []
    if check.findings:
        panels.append(_findings_table(check.findings))
    panels += [_images(finding) for finding in check.findings if finding.pictures]
    panels += [_rows_table(finding) for finding in check.findings if finding.rows]
    if check.class_counts:
        panels.append(_class_bars(check))
    known = check.lengths[~np.isnan(check.lengths)]
    if len(known):
        panels.append(_length_histogram(known, check.length_unit))
    if not panels:
        panels.append(Table("", ("found",), (("nothing",),)))
    facts = [(split, counted(size, "row")) for split, size in check.sizes.items()]
    return Payload(
        "data-check",
        check.name,
        verdict(check),
        tuple(panels),
        CAVEAT,
        "exact",
        tuple(facts),
        check_json(check),
    )


def _findings_table(findings: Sequence[Finding]) -> Table:
    rows = tuple((each.severity, each.check, each.message, each.advice) for each in findings)
    return Table("", ("severity", "check", "found", "advice"), rows)


def _rows_table(finding: Finding) -> Table:
    shown = tuple((cut_text(row, MAX_CHARACTERS),) for row in finding.rows[:TABLE_ROWS])
    title = f"{finding.check}: {finding.message}"
    column = "found" if len(shown) == finding.count else f"the first {len(shown)} of {finding.count:,}"
    return Table(title, (column,), shown)


def _images(finding: Finding) -> Images:
    tiles = [Tile(pixels, (Caption(cut_text(name, MAX_NAME), "muted"),)) for name, pixels in finding.pictures]
    starts = range(0, len(tiles), TILES_PER_ROW)
    rows = tuple(ImageRow(tuple(tiles[start : start + TILES_PER_ROW])) for start in starts)
    return Images(finding.message, rows, gap=0.12)


def _class_bars(check: "DataCheck") -> Bars:
    """Return the largest classes, the largest first."""
    order = sorted(check.class_counts, key=lambda label: -sum(check.class_counts[label]))[:MAX_CLASSES]
    values = np.array([check.class_counts[label] for label in order], np.int64).T
    of_all, unit = len(check.class_counts), f"{check.label_unit}s"
    title = (
        f"{unit} of each class"
        if len(order) == of_all
        else f"{unit} of the {len(order)} largest of {of_all:,} classes"
    )
    return Bars(
        title, NamedArray(values, (Axis("split", tuple(check.sizes)), Axis("class", tuple(order))), unit)
    )


def _length_histogram(lengths: NDArray[np.float64], unit: str) -> Histograms:
    is_far = bool(lengths.min() > 0 and lengths.max() > FAR * np.median(lengths))
    counts, edges = np.histogram(lengths, _length_edges(lengths, is_far))
    histogram = Histogram("source", tuple(counts.tolist()))
    label = f"length of the source in {unit}"
    return Histograms("rows of each length", edges, (histogram,), x_label=label, y_label="rows", log_x=is_far)


def _length_edges(lengths: NDArray[np.float64], is_far: bool) -> NDArray[np.float64]:
    """Return the limits of the bins. Lengths that are whole have whole limits: bins as wide hold as many."""
    low, high = float(lengths.min()), float(lengths.max())
    if (lengths != lengths.round()).any():
        return np.geomspace(low, high, BINS + 1) if is_far else np.histogram_bin_edges(lengths, BINS)
    if is_far:
        return np.unique(np.geomspace(low, high + 1, BINS + 1).round())
    step = np.ceil((high + 1 - low) / BINS)
    return np.arange(low, high + 1 + step, step)
