"""The view `cells` of a language model: a text colored by units, and the units that follow a probe best."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback, no_progress
from foveal.core.whole_number import WholeNumber
from foveal.inspection.cells.ablation import log_probability, log_probability_without
from foveal.inspection.cells.compute import Cell, correlate_halves, find_cells, follow_unit
from foveal.inspection.cells.held_out import HeldOutText, read_held_out
from foveal.inspection.cells.probes import MEMORY_PROBES, PROBES, choose_probes
from foveal.inspection.panels import Axis, ColoredText, NamedArray, Table
from foveal.inspection.payload import Payload
from foveal.inspection.read_states import (
    bounded_values,
    check_state_name,
    read_chunks,
    state_names,
    why_no_states,
)
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import Ablation, View

SHOWN_CELLS, SHOWN_TOKENS, TOKENS_BEFORE = 3, 300, 240
"""Units that color the text, the tokens of the text, and those that the model has read before them."""
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
    held_out: HeldOutText


@register_view("cells")
class CellsView(View[CellsOptions]):
    summary = "A text colored by units of a language model: those that follow quotes, lines, indentation."
    Options = CellsOptions
    progress = "parts of the text read"

    def fits(self, run: InspectedRun) -> str:
        return why_no_states(run)

    def compute(
        self, run: InspectedRun, options: CellsOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        typed = _encode(run, options.text)
        cells, shown, held_out = _search(run, options, log, progress)
        rows = held_out.reported.flatten()
        start = _liveliest(held_out, shown, options)
        before = rows[max(0, start - TOKENS_BEFORE) : start] if typed is None else rows[:0]
        tokens = rows[start : start + SHOWN_TOKENS] if typed is None else typed
        values = _values(run, torch.cat([before, tokens]), shown)[:, len(before) :]
        pieces = tuple(run.processor.decode([token]) for token in tokens.tolist())
        panel = _colored_text(run, "" if typed is None else "typed text", pieces, values, shown)
        table, facts = _table(cells), tuple((cell.probe, _describe(cell)) for cell in shown)
        numbers = {"run": str(run.run.path), "split": held_out.split, "cells": [c._asdict() for c in cells]}
        title = f"{run.run.path}: cells, {held_out.split}"
        panels = (panel, table)
        return Payload("cells", str(run.run.path), title, panels, CAVEAT, "exact", facts, numbers)

    def ablate(self, run: InspectedRun, options: CellsOptions, log: Log) -> tuple[Ablation, ...]:
        """Hold each shown unit at its mean, and compare the next tokens of held-out text."""
        _, shown, held_out = _search(run, options, log, no_progress)
        text, window = held_out.reported, run.config.data.context_length
        before, outcome = log_probability(run.model, text, window), "the next token, on average"
        return tuple(
            Ablation(
                f"{_name(cell)} ({cell.probe})",
                outcome,
                before,
                log_probability_without(run.model, cell.layer, cell.unit, text, window),
            )
            for cell in shown
        )


def _search(run: InspectedRun, options: CellsOptions, log: Log, progress: ProgressCallback) -> _SearchResult:
    """Search the unit of each probe; with `unit`, what this unit follows.

    Raises: UserError: there is no such probe, layer or unit, or no probe occurs in the text.
    """
    probes = choose_probes(options.find)
    layers = _layers(run, options)
    held_out = read_held_out(run, options.data, probes, log)
    window = run.config.data.context_length
    chunks = read_chunks(run.model, held_out.tokens, window, layers, progress)
    halves = correlate_halves((chunk.states for chunk in chunks), held_out.labels)
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


def _layers(run: InspectedRun, options: CellsOptions) -> list[str]:
    """Return the layers in which units are searched.

    Raises: UserError: there is no such layer.
    """
    check_state_name(run, options.layer)
    names = state_names(run.model)
    if options.layer is not None:
        return [options.layer]
    return names if options.unit is None else names[-1:]


def _check_unit(unit: int, layer: str, count: int) -> None:
    if not 0 <= unit < count:
        raise UserError(f"--unit {unit}: {layer} has {count:,} units, counted from 0; name one of them")


def _encode(run: InspectedRun, text: str | None) -> Int[Tensor, " T"] | None:
    """Return the tokens of a typed text.

    Raises: UserError: the text is empty or too long, or it has a character without a token.
    """
    if text is None:
        return None
    tokens = run.processor.encode(text)
    if not len(tokens):
        raise UserError("--text is empty: write a text")
    if run.model.limit is not None and len(tokens) > run.model.limit:
        raise UserError(f"--text: {len(tokens):,} tokens; the model reads {run.model.limit:,} at most")
    return torch.from_numpy(np.asarray(tokens, np.int64)).to(next(run.model.parameters()).device)


def _liveliest(held_out: HeldOutText, shown: Sequence[Cell], options: CellsOptions) -> int:
    """Return the start of the part of the reported text in which the shown probes change most."""
    names = [*choose_probes(options.find)]
    columns = [names.index(cell.probe) for cell in shown]
    labels = held_out.labels[len(held_out.tokens) // 2 :].flatten(0, 1)[:, columns]
    parts = torch.split(labels / labels.std(0), SHOWN_TOKENS)
    whole = [part.std(0).clamp(max=1).sum() for part in parts if len(part) == SHOWN_TOKENS]
    return SHOWN_TOKENS * int(torch.stack(whole).argmax()) if whole else 0


def _values(run: InspectedRun, tokens: Int[Tensor, " T"], shown: Sequence[Cell]) -> Float[np.ndarray, "C T"]:
    """Return the values of the shown units after each token."""
    layers = [*dict.fromkeys(cell.layer for cell in shown)]
    chunks = [*read_chunks(run.model, tokens[None], run.config.data.context_length, layers)]
    states = {name: torch.cat([chunk.states[name][0] for chunk in chunks]) for name in layers}
    values = [bounded_values(cell.layer, states[cell.layer][:, cell.unit]) for cell in shown]
    return torch.stack(values).float().cpu().numpy()


def _colored_text(
    run: InspectedRun,
    title: str,
    pieces: tuple[str, ...],
    values: Float[np.ndarray, "C T"],
    shown: Sequence[Cell],
) -> ColoredText:
    """Return the text, colored once by each unit. Outputs without bounds get the scale of the largest."""
    largest = max(1.0, float(np.abs(values).max()))
    labels = tuple(f"{cell.probe}: {_describe(cell)}" for cell in shown)
    array = NamedArray(values, (Axis("unit", labels), Axis("token", pieces)), "value of the unit")
    return ColoredText(title, pieces, array, -largest, largest)


def _table(cells: Sequence[Cell]) -> Table:
    rows = [
        (cell.probe, cell.layer, str(cell.unit), f"{cell.r:+.2f}", f"{cell.control:.2f}") for cell in cells
    ]
    return Table("", ("probe", "layer", "unit", "r, held out", "|r|, control"), tuple(rows))


def _name(cell: Cell) -> str:
    return f"unit {cell.unit} of {cell.layer}"


def _describe(cell: Cell) -> str:
    return f"{_name(cell)}, r = {cell.r:+.2f} on held-out text, {cell.control:.2f} in the control"
