"""Recurrent layers in time: each state reads the state before it and the layer below."""

import pytest

from foveal.inspection.model_map.unrolled import SHOWN_STEPS, StateLayer, shown_steps, unrolled_graph


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
    texts = {node.name: node.lines for node in graph.nodes}
    assert texts["x 1"] == ("x2", "␣")
    assert texts["y 2"] == ("y3", "d")


def test_a_layer_that_reads_from_the_end() -> None:
    graph = unrolled_graph("", [StateLayer("encoder.blocks.0.mixer.back", 2, 8)], ["a", "b"], [])
    edges = [(edge.source, edge.target) for edge in graph.edges if edge.source.startswith("h")]
    assert edges == [("h 0 start", "h 0 1"), ("h 0 1", "h 0 0")]


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
