"""Graphs of models whose graph is known, and sums that are those of the whole model."""

from collections.abc import Callable
from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from foveal.inspection.layers.compute import first_tensor
from foveal.inspection.model_map.fold import ModelGraph, deepest, fold, places
from foveal.inspection.model_map.panels import graph_panel, short_count, table_panel
from foveal.inspection.model_map.trace import Trace, trace_model
from foveal.layers.blocks.feedforward import MLP
from foveal.layers.blocks.mixer_block import Block
from foveal.layers.mixers.recurrent_mixers import LSTM
from foveal.layers.mixers.self_attention import SelfAttention
from foveal.ops.jit.dispatch import reference_only


class Residual(nn.Module):
    """`y = out(x + second(relu(first(x))))`, with `out` computed from its weight, not called."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 4))
        self.out = nn.Linear(4, 3, bias=False)
        self.unused = nn.Linear(2, 2)
        self.nothing = nn.Dropout()

    def forward(self, x: Tensor) -> Tensor:
        return self.nothing(x + self.body(x)) @ self.out.weight.t()


def traced(model: nn.Module, x: Tensor, run: Callable[[], Any] | None = None) -> Trace:
    return trace_model(model, {"x": x}, run or (lambda: model(x)))


def named(graph: ModelGraph) -> set[tuple[str, str]]:
    return {(source.partition(" of ")[0], target.partition(" of ")[0]) for source, target in graph.edges}


def test_the_graph_of_a_residual_connection() -> None:
    model = Residual().eval()
    trace = traced(model, torch.randn(1, 5, 4))
    graph = fold(trace, 2)
    assert named(graph) == {
        ("input:x", "body.0"),
        ("body.0", "body.1"),
        ("body.1", "body.2"),
        ("body.2", "/+"),
        ("input:x", "/+"),
        ("/+", "out"),
        ("out", "output"),
    }
    box = graph.boxes["body.0"]
    assert (box.shape, box.parameters, box.multiply_adds, box.kind) == ((5, 6), 30, 120, "Linear")
    assert graph.boxes["out"].multiply_adds == 5 * 4 * 3
    assert graph.boxes["out"].parameters == 12
    assert graph.unused_parameters == 6
    shapes = {name.partition(" of ")[0]: box.shape for name, box in graph.boxes.items()}
    assert (shapes["input:x"], shapes["/+"], shapes["output"]) == ((5, 4), (5, 4), (5, 3))
    shortcut = {("body", "/+"), ("input:x", "/+"), ("/+", "out")}
    assert named(fold(trace, 1)) == {("input:x", "body"), ("out", "output")} | shortcut
    assert fold(trace, 1).boxes["body"].multiply_adds == 240


def test_a_sum_of_modules_is_a_sign() -> None:
    model = nn.ModuleDict({"first": nn.Linear(4, 4), "body": nn.Linear(4, 4), "last": nn.Linear(4, 2)})

    def run() -> Tensor:
        y = model["first"](x)
        return model["last"](model["body"](y) + y)

    x = torch.randn(1, 4)
    graph = fold(traced(model, x, run), 1)
    assert named(graph) == {
        ("input:x", "first"),
        ("first", "body"),
        ("first", "/+"),
        ("body", "/+"),
        ("/+", "last"),
        ("last", "output"),
    }
    panel = graph_panel(graph)
    bent = [(edge.source, edge.target.partition(" of ")[0]) for edge in panel.edges if edge.bend]
    assert bent == [("first", "/+")], "the shortcut goes around the module"
    assert [node.lines for node in panel.nodes if node.shape == "circle"] == [("+",)]


def test_a_mask_of_tokens_is_no_data_that_are_joined() -> None:
    model = nn.ModuleDict({"table": nn.Embedding(7, 4), "last": nn.Linear(4, 2)})
    tokens = torch.tensor([[1, 2, 0]])

    def run() -> Tensor:
        return model["last"](model["table"](tokens) * (tokens > 0)[..., None])

    graph = fold(traced(model, tokens, run), 1)
    assert named(graph) == {("input:x", "table"), ("table", "last"), ("last", "output")}


MODELS: dict[str, Callable[[], nn.Module]] = {
    "residual": Residual,
    "attention": lambda: Block(SelfAttention(8, heads=2), MLP(8, hidden=16), norm="layer", residual=True),
    "lstm": lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU()).append(Block(LSTM(8, 8))),
    "convolutions": lambda: nn.Sequential(nn.Unflatten(1, (5, 2)), nn.Conv1d(5, 3, 2), nn.Flatten()),
}
SHAPES = {"residual": (5, 4), "attention": (5, 8), "lstm": (5, 4), "convolutions": (10,)}


@pytest.mark.parametrize("name", MODELS)
def test_sums_and_shapes_are_those_of_the_model(name: str) -> None:
    model, x = MODELS[name]().eval(), torch.randn(1, *SHAPES[name])
    shapes: dict[str, tuple[int, ...]] = {}

    def keep(path: str) -> Callable[..., None]:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            tensor = first_tensor(output)
            assert tensor is not None
            shapes[path] = tuple(tensor.shape[1:])

        return hook

    before = {key: value.clone() for key, value in model.state_dict().items()}
    trace = traced(model, x)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    hooks = [module.register_forward_hook(keep(path)) for path, module in model.named_modules()]
    with torch.no_grad(), reference_only(), FlopCounterMode(display=False) as counter:
        model(x)
    for hook in hooks:
        hook.remove()
    assert counter.get_total_flops() > 0
    parameters = sum(parameter.numel() for parameter in model.parameters())
    for depth in range(1, deepest(trace) + 1):
        graph = fold(trace, depth)
        boxes = graph.boxes.values()
        assert 2 * sum(box.multiply_adds for box in boxes) == counter.get_total_flops()
        assert sum(box.parameters for box in boxes) + graph.unused_parameters == parameters
        for box in boxes:
            if box.name in shapes:
                assert box.shape == shapes[box.name]
        at = places(graph)
        assert len(set(at.values())) == len(at)
        assert all(at[source][1] < at[target][1] for source, target in graph.edges), "arrows point down"
        assert table_panel(graph).rows[-1][3] == f"{parameters - graph.unused_parameters:,}"


def test_layers_of_torch_are_not_one_operation() -> None:
    """As they are in evaluation mode, where products of queries, keys and values were not counted."""
    T, D, F = 5, 8, 12
    layer = nn.TransformerEncoderLayer(D, 2, F, batch_first=True).eval()
    graph = fold(traced(layer, torch.randn(1, T, D)), 1)
    assert graph.boxes["self_attn"].multiply_adds == 4 * T * D * D + 2 * T * T * D
    assert graph.boxes["linear1"].multiply_adds == graph.boxes["linear2"].multiply_adds == T * D * F
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize("table", ["table", "embedding"])
def test_shared_weights_count_once(table: str) -> None:
    """A projection with the table of the embedding is a box of its own, without parameters."""
    model = nn.ModuleDict(
        {table: nn.Embedding(7, 4), "body": nn.Linear(4, 4), "project": nn.Linear(4, 7, False)}
    )
    model["project"].weight = model[table].weight
    tokens = torch.tensor([[1, 2]])
    graph = fold(
        traced(
            model,
            tokens,
            lambda: model["body"](model[table](tokens)) @ cast(Tensor, model["project"].weight).t(),
        ),
        1,
    )
    assert named(graph) == {
        ("input:x", table),
        (table, "body"),
        ("body", "project"),
        ("project", "output"),
    }
    assert [graph.boxes[name].parameters for name in (table, "body", "project")] == [28, 20, 0]


def test_counts_in_words() -> None:
    assert [short_count(count) for count in (0, 999, 1_234, 40_551_040, 2_000_000_000)] == [
        "0",
        "999",
        "1.23 k",
        "40.6 M",
        "2 G",
    ]
