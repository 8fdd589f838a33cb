"""The view `cells` of a model that reads text: a text colored by units, and the units that follow a probe."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback, no_progress
from foveal.core.whole_number import WholeNumber
from foveal.inspection.cells.compute import Cell, correlate_halves, find_cells, follow_unit
from foveal.inspection.cells.example_texts import encoder_states, read_examples, why_no_texts
from foveal.inspection.cells.held_out import read_held_out
from foveal.inspection.cells.probes import MEMORY_PROBES, PROBES, choose_probes
from foveal.inspection.cells.searched_text import Pieces, SearchedText
from foveal.inspection.panels import Axis, ColoredText, NamedArray, Table
from foveal.inspection.payload import Payload
from foveal.inspection.read_states import (
    bounded_values,
    check_state_name,
    state_names,
    why_no_states,
)
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import Ablation, View

LOWEST_R = 0.1
"""The correlation from which a unit is said to follow a probe, if the control has less."""
SHOWN_CELLS = 3
"""Units that color the text."""
CAVEAT = (
    "r says that a unit goes along with a property, not that the model uses it; properties go along with one "
    "another, and what many units hold together shows in none of them"
)


@dataclass(frozen=True)
class CellsOptions:
    data: str | None = None
    """Other text than the run's held-out part."""
    text: str | None = None
    """A text to color in place of a held-out one."""
    layer: str | None = None
    """The layer of --unit, such as stack.blocks.0.mixer/c; the last one if not given."""
    unit: WholeNumber | None = None
    """A unit to show, counted from 0; without it, units that follow a probe are searched."""
    find: str | None = None
    """One probe, such as 'indentation', or a regular expression between slashes, such as '/[0-9]+/'."""


class _SearchResult(NamedTuple):
    """The units of the table, and those that color the text."""

    cells: list[Cell]
    shown: list[Cell]
    held_out: SearchedText


@register_view("cells")
class CellsView(View[CellsOptions]):
    summary = "A text colored by units of the model: those that follow quotes, lines, indentation."
    Options = CellsOptions
    progress = "parts of the text read"

    def fits(self, run: InspectedRun) -> str:
        return "" if not why_no_states(run) else why_no_texts(run)

    def compute(
        self, run: InspectedRun, options: CellsOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        cells, shown, held_out = _search(run, options, log, progress)
        layers = [*dict.fromkeys(cell.layer for cell in shown)]
        if options.text is None:
            names = [*choose_probes(options.find)]
            pieces = held_out.shown(layers, [names.index(cell.probe) for cell in shown])
        else:
            pieces = held_out.typed(options.text, layers)
        panel = _colored_text("" if options.text is None else "typed text", pieces, shown)
        table, facts = _table(cells), tuple((cell.probe, _describe(cell)) for cell in shown)
        numbers = {"run": str(run.run.path), "split": held_out.split, "cells": [c._asdict() for c in cells]}
        title = f"{run.run.path}: cells, {held_out.split}"
        panels = (panel, table)
        return Payload("cells", str(run.run.path), title, panels, CAVEAT, "exact", facts, numbers)

    def ablate(self, run: InspectedRun, options: CellsOptions, log: Log) -> tuple[Ablation, ...]:
        """Hold each shown unit at its mean, and compare the targets of held-out text."""
        _, shown, held_out = _search(run, options, log, no_progress)
        results = []
        for cell in shown:
            before, after = held_out.log_probabilities(cell.layer, [None, cell.unit])
            removed = f"{_name(cell)} ({cell.probe})"
            results.append(Ablation(removed, "the next target, on average", before, after))
        return tuple(results)


def _search(run: InspectedRun, options: CellsOptions, log: Log, progress: ProgressCallback) -> _SearchResult:
    """Search the unit of each probe; with `unit`, what this unit follows.

    Raises: UserError: there is no such probe, layer or unit, or no probe occurs in the text.
    """
    probes = choose_probes(options.find)
    reads_on = not why_no_states(run)
    layers = _layers(run, options, state_names(run.model) if reads_on else encoder_states(run.model))
    held_out: SearchedText = (read_held_out if reads_on else read_examples)(run, options.data, probes, log)
    halves = correlate_halves(held_out.chunks(layers, progress), held_out.labels)
    if options.unit is None:
        cells = find_cells(halves, [*probes])
    else:
        _check_unit(options.unit, layers[0], len(halves[0][layers[0]]))
        cells = follow_unit(halves, layers[0], options.unit, [*probes])
    if not cells:
        raise UserError(
            f"{held_out.split}: {options.find or 'no probe'} does not occur in both halves of the text, or "
            "the unit is constant; name another text with --data or another probe with --find"
        )
    ranked = sorted(cells, key=lambda cell: -abs(cell.r))
    if options.unit is not None:
        return _SearchResult(ranked, ranked[:1], held_out)
    # What follows from the last character alone is no memory.
    lasting = [cell for cell in ranked if cell.probe in MEMORY_PROBES or cell.probe not in PROBES]
    return _SearchResult(cells, (lasting or ranked)[:SHOWN_CELLS], held_out)


def _layers(run: InspectedRun, options: CellsOptions, names: list[str]) -> list[str]:
    """Return the layers in which units are searched.

    Raises: UserError: there is no such layer.
    """
    check_state_name(run, options.layer, names)
    if options.layer is not None:
        return [options.layer]
    return names if options.unit is None else names[-1:]


def _check_unit(unit: int, layer: str, count: int) -> None:
    if not 0 <= unit < count:
        raise UserError(f"--unit {unit}: {layer} has {count:,} units, counted from 0; name one of them")


def _colored_text(title: str, pieces: Pieces, shown: Sequence[Cell]) -> ColoredText:
    """Return the text, colored once by each unit. Outputs without bounds get the scale of the largest."""
    units = [bounded_values(cell.layer, pieces.states[cell.layer][:, cell.unit]) for cell in shown]
    values = torch.stack(units).float().cpu().numpy()
    largest = max(1.0, float(np.abs(values).max()))
    labels = tuple(f"{cell.probe}: {_describe(cell)}" for cell in shown)
    array = NamedArray(values, (Axis("unit", labels), Axis("token", pieces.tokens)), "value of the unit")
    return ColoredText(title, pieces.tokens, array, -largest, largest)


def _table(cells: Sequence[Cell]) -> Table:
    rows = [
        (cell.probe, cell.layer, str(cell.unit), f"{cell.r:+.2f}", f"{cell.control:.2f}") for cell in cells
    ]
    return Table("", ("probe", "layer", "unit", "r, held out", "|r|, control"), tuple(rows))


def _name(cell: Cell) -> str:
    return f"unit {cell.unit} of {cell.layer}"


def _describe(cell: Cell) -> str:
    nearest = "" if abs(cell.r) > max(LOWEST_R, cell.control) else "no unit follows it; the nearest is "
    return f"{nearest}{_name(cell)}, r = {cell.r:+.2f} on held-out text, {cell.control:.2f} in the control"
