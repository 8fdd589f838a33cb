"""Experts: even and collapsed loads, classes that decide the expert, and a run of each kind."""

import json
from typing import Any

import numpy as np
import pytest
import torch

from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.inspection.experts.compute import (
    class_table,
    load,
    routing,
    shuffled,
    token_classes,
    without_expert,
)
from foveal.inspection.experts.view import ExpertsView
from foveal.layers.blocks.moe import Experts
from tests.support.untrained_runs import (
    CORPUS,
    DECODER,
    ENCODER,
    UntrainedRun,
    untrained_run,
    write_labeled,
    write_plays,
    write_reversed,
)

VIEW = ExpertsView()
EXPERTS = ("model.feedforward=moe", "model.experts.count=5", "model.experts.top_k=2")
READING = tuple(setting.replace("model.", "model.encoder.", 1) for setting in EXPERTS)


@pytest.fixture(autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


def one_hot(experts: list[int], count: int) -> np.ndarray:
    return np.eye(count)[experts]


def test_an_even_load_varies_by_nothing() -> None:
    even = load(one_hot([0, 1, 2, 3] * 5, 4), 1)
    assert (even.variation, even.dropped, even.collapsed) == (0.0, 0, False)
    assert even.effective == pytest.approx(4.0)


def test_a_collapsed_router_is_a_fact() -> None:
    gates = one_hot([2] * 30 + [1], 8)
    collapsed = load(gates, 1)
    assert collapsed.collapsed
    assert collapsed.effective < 1.2
    assert collapsed.variation == pytest.approx(np.std([0, 1, 30, 0, 0, 0, 0, 0]) / (31 / 8))
    assert not load(one_hot([0, 1], 2), 1).collapsed, "two experts are all there are"


def test_dropped_tokens_are_counted() -> None:
    gates = one_hot([0, 1, 2, 3], 4)
    gates[1] = 0.0
    dropped = load(gates, 1)
    assert (dropped.dropped, dropped.counts.sum()) == (1, 3)
    assert load(gates, 2).dropped == 5, "each of 4 tokens was to be sent to 2 experts"


def test_a_class_that_decides_the_expert() -> None:
    """Two classes, two experts: one bit, and PMI of one bit on the diagonal."""
    classes = ["digit", "space"] * 50
    table = class_table(one_hot([0, 1] * 50, 2), classes)
    assert table.classes == ("digit", "space")
    assert table.counts.tolist() == [[50, 0], [0, 50]]
    assert table.information == pytest.approx(1.0)
    assert np.diag(table.pointwise).tolist() == pytest.approx([1.0, 1.0])
    assert np.isnan(table.pointwise[0, 1])
    control = class_table(one_hot([0, 1] * 50, 2), shuffled(classes))
    assert 0 <= control.information < 0.1
    uneven = class_table(one_hot([0, 0, 0, 1], 2), ["digit", "digit", "space", "space"])
    assert uneven.pointwise[0, 1] == pytest.approx(np.log2((1 / 4) / (3 / 4 * 2 / 4)))


def test_classes_by_form() -> None:
    tokens = [*"A dog, 3\n"]
    names = "capital,space,word start,in a word,in a word,punctuation,space,digit,line break"
    assert token_classes(tokens) == names.split(",")
    pieces = ["The", " dog", "s", " 12", ".", "<stop>", "\U0001f600", " \u05e9\u05dc"]
    names = "capital,word start,in a word,digit,punctuation,special,punctuation,word start"
    assert token_classes(pieces) == names.split(",")
    assert token_classes(["the ", "cat "]) == ["word start", "word start"], "words with their space"
    assert token_classes([]) == []


def test_an_expert_without_weights_gives_zeros() -> None:
    """What is left is the sum over the other experts."""
    layer = Experts(4, 6, 3, 2).double()
    x, whole = torch.randn(1, 7, 4).double(), layer.weight_contract.detach().clone()
    with torch.no_grad():
        y = layer(x, None)[0]
        with without_expert(layer, 1):
            left = layer(x, None)[0]
        other = layer(x, None)[0]
        layer.weight_contract[[0, 2]] = 0.0
        assert torch.allclose(y - left, layer(x, None)[0])
        layer.weight_contract.copy_(whole)
    assert other.equal(y)


MAKERS: dict[str, Any] = {
    "language-model": lambda: untrained_run(write_plays(), "moe", *DECODER, *CORPUS, *EXPERTS),
    "labels": lambda: untrained_run(write_labeled(), "text-classification", *ENCODER, *READING),
    "pairs": lambda: untrained_run(write_reversed(), "translation", *ENCODER, *DECODER, *EXPERTS),
}
_made: dict[str, UntrainedRun] = {}


def run_of(kind: str) -> UntrainedRun:
    if kind not in _made:
        _made[kind] = MAKERS[kind]()
    return _made[kind]


@pytest.mark.parametrize("kind", MAKERS)
def test_each_run_with_experts_has_the_view(kind: str) -> None:
    run = run_of(kind)
    assert VIEW.fits(run) == ""
    payload = VIEW.compute(run, VIEW.Options(), lambda line: None, no_progress)
    json.dumps(payload.to_json(), allow_nan=False)
    for one in payload.values["loads"]:
        assert sum(one["counts"]) + one["dropped"] == one["tokens"] * one["active"]
        assert one["dropped"] == 0
    most, least = VIEW.ablate(run, VIEW.Options(), lambda line: None)
    assert most.before == least.before != most.after
    assert VIEW.ablate(run, VIEW.Options(), lambda line: None)[0] == most


def test_the_gates_are_those_of_the_router() -> None:
    run = run_of("language-model")
    chosen = run.task.input_of_row(run.prepared.held_out, 0)
    (route,) = routing(run.model, chosen)
    block = run.model.stack.blocks[0]
    read = list[torch.Tensor]()
    handle = block.feedforward.register_forward_hook(lambda _, inputs, output: read.append(inputs[0]))
    with torch.no_grad():
        chosen.log_probabilities()
    handle.remove()
    probabilities = (read[0][0] @ block.feedforward.router.weight.T).softmax(1).double()
    best, ids = probabilities.topk(2, 1)
    expected = torch.zeros_like(probabilities).scatter(1, ids, best / best.sum(1, keepdim=True))
    assert np.allclose(route.gates, expected.detach().numpy(), atol=1e-6)
    assert route.tokens == chosen.source


def test_what_does_not_fit_is_one_line() -> None:
    with pytest.raises(UserError, match="--layer 7: this run has 1"):
        VIEW.compute(run_of("labels"), VIEW.Options(layer=7), lambda line: None, no_progress)
    dense = untrained_run(write_plays(), "gru", *DECODER, *CORPUS)
    assert "no experts" in VIEW.fits(dense)
    VIEW.compute(run_of("language-model"), VIEW.Options(text="a"), lambda line: None, no_progress)
