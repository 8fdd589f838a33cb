"""The view `experts` of a run: who goes where in a mixture of experts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.terminal_text import counted
from foveal.core.whole_number import WholeNumber
from foveal.inspection.chosen_input import ChosenInput, InputOptions, choose_input, why_no_input
from foveal.inspection.experts.compute import (
    ClassTable,
    Load,
    Routing,
    class_table,
    expert_layers,
    load,
    routing,
    shuffled,
    token_classes,
    without_expert,
)
from foveal.inspection.panels import Axis, Bars, ColoredText, Heatmap, NamedArray, Panel, Table
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.text_writer import token_label
from foveal.inspection.view import Ablation, View

MAX_ROWS, MAX_COUNTED, MAX_TOKENS = 200, 20_000, 64
"""Inputs and tokens at most whose experts are counted, and tokens of the map of gates."""
MAX_BITS = 3.0
"""Bits at the ends of the colors: rare classes have more by chance."""
CAVEAT = (
    "an expert that gets one class of tokens need not know anything about it: the router may have learned to "
    "tell them apart by chance, and a class is only the form of a token. Information that the shuffled "
    "control also has is chance"
)


@dataclass(frozen=True)
class ExpertsOptions(InputOptions):
    layer: WholeNumber = 0
    """The layer that is shown, counted from 0 among those with experts."""


class Counted(NamedTuple):
    """The gates of a layer for the tokens of held-out inputs, and the classes of these tokens."""

    gates: Float[np.ndarray, "T E"]
    classes: list[str]


@register_view("experts")
class ExpertsView(View[ExpertsOptions]):
    summary = "Which tokens a mixture of experts sends to which expert, and how even their load is."
    Options = ExpertsOptions
    progress = "inputs read"

    def fits(self, run: InspectedRun) -> str:
        if not expert_layers(run.model):
            return "this run has no experts (model.feedforward=moe trains some)"
        return why_no_input(run)

    def compute(
        self, run: InspectedRun, options: ExpertsOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        layer, chosen = _layer(run, options), choose_input(run, options, log)
        return experts_payload(
            run, chosen, layer, routing(run.model, chosen), _count(run, options, log, progress)
        )

    def ablate(self, run: InspectedRun, options: ExpertsOptions, log: Log) -> tuple[Ablation, ...]:
        path, chosen = _layer(run, options), choose_input(run, options, log)
        (route,) = (route for route in routing(run.model, chosen) if route.layer == path)
        module = run.model.get_submodule(path)
        counts = load(route.gates, module.active).counts
        before = chosen.total()
        results = []
        for which, expert in (("most", int(counts.argmax())), ("least", int(counts.argmin()))):
            with without_expert(module, expert):
                after = chosen.total()
            removed = f"expert {expert} of {path}, the {which} used"
            results.append(Ablation(removed, "the reference", before, after, len(chosen.target)))
        return tuple(results)


def _layer(run: InspectedRun, options: ExpertsOptions) -> str:
    layers = expert_layers(run.model)
    if not 0 <= options.layer < len(layers):
        raise UserError(
            f"--layer {options.layer}: this run has {counted(len(layers), 'layer')} with experts, from 0 on"
        )
    return layers[options.layer]


def _count(
    run: InspectedRun, options: ExpertsOptions, log: Log, progress: ProgressCallback
) -> dict[str, Counted]:
    """Return by layer where the tokens of held-out inputs go, of the first ones."""
    split, _, _ = run.held_out(options.data, "with --data", log)
    gates, classes = dict[str, list[Any]](), dict[str, list[str]]()
    rows = min(MAX_ROWS, run.task.count_inputs(split))
    for row in range(rows):
        progress(row, rows)
        for route in routing(run.model, run.task.input_of_row(split, row)):
            gates.setdefault(route.layer, []).append(route.gates)
            classes.setdefault(route.layer, []).extend(token_classes(route.tokens))
        if max(map(len, classes.values())) >= MAX_COUNTED:
            break
    return {layer: Counted(np.concatenate(parts), classes[layer]) for layer, parts in gates.items()}


def experts_payload(
    run: InspectedRun, chosen: ChosenInput, layer: str, routes: list[Routing], counted: dict[str, Counted]
) -> Payload:
    """Return the input by experts, the load, and the classes of tokens of one layer."""
    subject, active = str(run.run.path), run.model.get_submodule(layer).active
    loads = {path: load(one.gates, active) for path, one in counted.items()}
    (shown,) = (route for route in routes if route.layer == layer)
    own = counted[layer]
    panels: list[Panel] = [_text(shown), _gates(shown)]
    facts = [
        ("input", chosen.name),
        ("layer", f"{layer}, {active} of {shown.gates.shape[1]} experts a token"),
    ]
    facts += [(path, _load_fact(one)) for path, one in loads.items()]
    values: dict[str, Any] = {"run": subject, "layer": layer, "loads": [*_load_values(loads)]}
    if run.task.reads_text:
        table = class_table(own.gates, own.classes)
        control = class_table(own.gates, shuffled(own.classes))
        panels += [*_maps(table, control), _class_rows(table)]
        text = f"{table.information:.4f} bits about the class of a token; shuffled {control.information:.4f}"
        facts.append(("information", text))
        values |= {"information": table.information, "shuffled": control.information}
    panels.append(_bars(loads[layer]))
    title = f"{subject}: experts of {layer}"
    return Payload("experts", subject, title, tuple(panels), CAVEAT, "exact", tuple(facts), values)


def _load_fact(one: Load) -> str:
    parts = [
        f"coefficient of variation {one.variation:.2f}",
        f"{one.effective:.1f} of {len(one.counts)} experts in effect",
        f"{one.dropped:,} assignments dropped",
    ]
    return "; ".join([*parts, *(["collapsed: hardly more than the active experts"] if one.collapsed else [])])


def _load_values(loads: dict[str, Load]) -> Iterator[dict[str, Any]]:
    for layer, one in loads.items():
        counts = {"layer": layer, "counts": one.counts.tolist(), "tokens": one.tokens, "active": one.active}
        even = {"variation": one.variation, "effective": one.effective, "collapsed": one.collapsed}
        yield counts | even | {"dropped": one.dropped}


def _text(route: Routing) -> ColoredText:
    """Return the tokens, each in the color of the expert with its largest gate; a dropped one has none."""
    top = np.where(route.gates.any(1), route.gates.argmax(1), np.nan)
    names = tuple(map(str, range(route.gates.shape[1])))
    axes = Axis("layer", ("expert with the largest gate",)), Axis("token", route.tokens)
    return ColoredText(
        "", route.tokens, NamedArray(top[None], axes, "expert"), 0.0, float(len(names) - 1), names
    )


def _gates(route: Routing) -> Heatmap:
    labels = tuple(map(token_label, route.tokens[:MAX_TOKENS]))
    axes = Axis("expert"), Axis("token", labels)
    return Heatmap("gates", NamedArray(route.gates[:MAX_TOKENS].T, axes, "gate"), 0.0, 1.0)


def _bars(one: Load) -> Bars:
    balanced = np.full(len(one.counts), 1 / len(one.counts))
    axes = (
        Axis("share", ("of the tokens", "balanced")),
        Axis("expert", tuple(map(str, range(len(one.counts))))),
    )
    return Bars(
        "load: share of held-out tokens (blue), balanced share (orange)",
        NamedArray(np.stack([one.fractions, balanced]), axes, "share"),
    )


def _maps(table: ClassTable, control: ClassTable) -> Iterator[Heatmap]:
    for title, one in (("expert and class", table), ("control: classes shuffled", control)):
        axes = Axis("expert"), Axis("class of token", one.classes)
        array = NamedArray(one.pointwise, axes, "pointwise mutual information, bits")
        yield Heatmap(title, array, -MAX_BITS, MAX_BITS)


def _class_rows(table: ClassTable) -> Table:
    rows = tuple(
        (str(expert), *(f"{count:,}" for count in counts))
        for expert, counts in enumerate(table.counts.tolist())
    )
    return Table("", ("expert", *table.classes), rows)
