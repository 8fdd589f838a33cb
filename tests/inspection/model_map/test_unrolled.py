"""Recurrent layers in time: each state reads the state before it and the layer below."""

import pytest
import torch
from torch import Tensor, nn

from foveal.inspection.chosen_input import ChosenInput
from foveal.inspection.model_map.unrolled import (
    SHOWN_STEPS,
    StateLayer,
    shown_steps,
    unrolled_graph,
    unrolled_graphs,
)
from foveal.inspection.panels import Graph
from foveal.layers.mixers.recurrent_mixers import GRU, LSTM


def test_two_layers_over_three_steps() -> None:
    layers = [StateLayer("stack.blocks.0.mixer", 3, 8), StateLayer("stack.blocks.1.mixer", 3, 8)]
    graph = unrolled_graph("", layers, ["a", " ", "c"], ["b", "c", "d"])
    edges = {(edge.source, edge.target) for edge in graph.edges}
    along = {(f"h {n} {a}", f"h {n} {b}") for n in (0, 1) for a, b in (("start", 0), (0, 1), (1, 2))}
    up = {(f"x {t}", f"h 0 {t}") for t in range(3)} | {(f"h 0 {t}", f"h 1 {t}") for t in range(3)}
    assert edges == along | up | {(f"h 1 {t}", f"y {t}") for t in range(3)}
    at = {node.name: node.place for node in graph.nodes}
    assert at["y 0"][1] < at["h 1 0"][1] < at["h 0 0"][1] < at["x 0"][1], "outputs above, inputs below"
    assert at["h 0 start"][0] < at["h 0 0"][0] < at["h 0 2"][0]
    assert [at[f"h {n} start"][1] for n in (0, 1)] == [at[f"h {n} 0"][1] for n in (0, 1)]
    texts = {node.name: node.lines for node in graph.nodes}
    assert texts["x 1"] == ("x2", "␣")
    assert texts["y 2"] == ("y3", "d")
    assert texts["h 1 2"] == ("h3", "8")


def test_a_layer_that_reads_from_the_end() -> None:
    graph = unrolled_graph("", [StateLayer("encoder.blocks.0.mixer.back", 2, 8)], ["a", "b"], [])
    edges = [(edge.source, edge.target) for edge in graph.edges if edge.source.startswith("h")]
    assert edges == [("h 0 start", "h 0 1"), ("h 0 1", "h 0 0")]
    at = {node.name: node.place for node in graph.nodes}
    assert at["h 0 start"][0] > at["h 0 1"][0] > at["h 0 0"][0]


class Pair(nn.Module):
    """An encoder of three steps and a decoder of two."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.ModuleList([GRU(2, 4), LSTM(4, 5)])
        self.decoder = GRU(2, 6)

    def log_probabilities(self, batch: Tensor) -> Tensor:
        x = batch
        for layer in self.encoder:
            x, _ = layer(x)
        y, _ = self.decoder(batch[:, :2])
        return y[0, :, 0]

    def with_own_answer(self, batch: Tensor) -> Tensor:
        return batch


def lowest_texts(graph: Graph) -> list[tuple[str, ...]]:
    return [node.lines for node in graph.nodes if node.name.startswith("x")]


def test_source_and_target_are_graphs_of_their_own() -> None:
    """A decoder reads `<start>` and the targets before; the layers of each graph are counted from 1."""
    pair = Pair()
    graphs, facts = unrolled_graphs(
        pair, ChosenInput(torch.randn(1, 3, 2), ("a", "b", "c"), ("d", "e"), pair)
    )
    assert [graph.title for graph in graphs] == ["source", "target"]
    assert lowest_texts(graphs[0]) == [("x1", "a"), ("x2", "b"), ("x3", "c")]
    assert lowest_texts(graphs[1]) == [("x1", "<start>"), ("x2", "d")]
    assert facts == [
        ("layer 1", "encoder.0: 3 steps of 4 numbers"),
        ("layer 2", "encoder.1: 3 steps of 5 numbers"),
        ("layer 1", "decoder: 2 steps of 6 numbers"),
    ]


def test_many_steps_have_a_gap() -> None:
    assert shown_steps(1) == [0]
    assert shown_steps(SHOWN_STEPS) == [*range(SHOWN_STEPS)]
    assert shown_steps(100) == [*range(SHOWN_STEPS - 1), None, 99]
    graph = unrolled_graph("", [StateLayer("mixer", 100, 8)], ["a"] * 100, [])
    names = [node.name for node in graph.nodes]
    assert names.count("h 0 None") == 1
    assert ("h 0 4", "h 0 None") in {(edge.source, edge.target) for edge in graph.edges}


@pytest.mark.parametrize("below", [[], ["a"]])
def test_fewer_names_than_steps(below: list[str]) -> None:
    graph = unrolled_graph("", [StateLayer("mixer", 2, 8)], below, [])
    assert sum(node.name.startswith("x") for node in graph.nodes) == len(below)
