"""The recurrent layers of a model, unrolled in time: inputs below, states in the middle, outputs above."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import nn

from foveal.core.errors import UserError
from foveal.core.terminal_text import WHITE_SPACE_SIGNS
from foveal.inspection.capture.capture import capture
from foveal.inspection.chosen_input import ChosenInput
from foveal.inspection.panels import Edge, Graph, Node

SHOWN_STEPS = 6
"""Steps of a row that are drawn: the first ones and the last."""
SITE = "*/h"
BACK = ".back"
"""The end of the path of a mixer that reads the row from its end."""


class StateLayer(NamedTuple):
    """A recurrent layer: its path, steps and width."""

    path: str
    steps: int
    width: int


def unrolled_graphs(model: nn.Module, chosen: ChosenInput) -> tuple[tuple[Graph, ...], list[tuple[str, str]]]:
    """Return a graph for the layers over the source, and one for those over the target, with facts.

    Raises: UserError: the model has no recurrent layer.
    """
    layers = state_layers(model, chosen)
    graphs, facts = [], []
    for steps in dict.fromkeys(layer.steps for layer in layers):
        group = [layer for layer in layers if layer.steps == steps]
        reads_source = steps == len(chosen.source)
        below = chosen.source if reads_source else ("<start>", *chosen.target[:-1])
        above = chosen.target if len(chosen.target) == steps else ()
        title = "" if len({layer.steps for layer in layers}) == 1 else "source" if reads_source else "target"
        graphs.append(unrolled_graph(title, group, below, above))
        for layer in group:
            number = f"layer {group.index(layer) + 1}"
            facts.append((number, f"{layer.path}: {layer.steps:,} steps of {layer.width:,} numbers"))
    return tuple(graphs), facts


def state_layers(model: nn.Module, chosen: ChosenInput) -> list[StateLayer]:
    """Return the recurrent layers in the order of the computation.

    Raises: UserError: there is none.
    """
    try:
        with torch.no_grad(), capture(model, SITE) as record:
            chosen.log_probabilities()
    except UserError:
        raise UserError("--unrolled: the model has no recurrent layer; leave it out") from None
    layers = []
    for name, values in record.items():
        _, steps, width = values.shapes[0]
        layers.append(StateLayer(name.removesuffix("/h"), steps, width))
    return layers


def unrolled_graph(
    title: str, layers: Sequence[StateLayer], below: Sequence[str], above: Sequence[str]
) -> Graph:
    """Return the graph of layers over the same steps. The outputs are drawn if each step has one."""
    steps = layers[0].steps
    shown = shown_steps(steps)
    bottom = len(layers) + 1
    nodes, edges = [], []
    for column, step in enumerate(shown, 1):
        if step is None:
            rows = range(len(layers))
            nodes += [
                Node(f"h {n} None", ("...",), (column, bottom - 1 - n), "muted", "circle") for n in rows
            ]
            continue
        if step < len(below):
            nodes.append(
                Node(f"x {step}", (f"x{step + 1}", _visible(below[step])), (column, bottom), "muted")
            )
        if above:
            nodes.append(Node(f"y {step}", (f"y{step + 1}", _visible(above[step])), (column, 0), "muted"))
        for number, layer in enumerate(layers):
            lines = (f"h{step + 1}", f"{layer.width:,}")
            nodes.append(Node(f"h {number} {step}", lines, (column, bottom - 1 - number)))
    names = {node.name for node in nodes}
    for number, layer in enumerate(layers):
        row = bottom - 1 - number
        reads_back = BACK in layer.path
        first = len(shown) + 1 if reads_back else 0
        nodes.append(Node(f"h {number} start", ("h0", f"layer {number + 1}"), (first, row), "muted"))
        edges += _along(number, shown, reads_back)
    for step in shown:
        if step is None:
            continue
        chain = [f"x {step}", *(f"h {number} {step}" for number in range(len(layers))), f"y {step}"]
        chain = [name for name in chain if name in names]
        edges += [Edge(source, target) for source, target in pairwise(chain)]
    known = {node.name for node in nodes}
    return Graph(title, tuple(nodes), tuple(edge for edge in edges if {edge.source, edge.target} <= known))


def _visible(token: str) -> str:
    """Return a token that is no white space alone."""
    return token if token.strip() else token.translate(WHITE_SPACE_SIGNS)


def shown_steps(steps: int) -> list[int | None]:
    """Return the numbers of the steps that are drawn; None stands for those between."""
    if steps <= SHOWN_STEPS:
        return [*range(steps)]
    return [*range(SHOWN_STEPS - 1), None, steps - 1]


def _along(number: int, shown: Sequence[int | None], reads_back: bool) -> list[Edge]:
    """Return the arrows of a layer from state to state, over the gap as well."""
    order = [*reversed(shown)] if reads_back else shown
    names = [f"h {number} start", *(f"h {number} {step}" for step in order)]
    return [Edge(source, target) for source, target in pairwise(names)]
