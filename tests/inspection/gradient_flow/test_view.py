"""The view `gradient-flow` of every kind of language model, and its options."""

import pytest
import torch

from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.inspection.gradient_flow.view import GradientFlowOptions, GradientFlowView
from foveal.inspection.panels import Lines
from tests.support.language_runs import LanguageRun, language_run

TEXT = "A line of 12 words.\n😀 שלום\n" * 12


def inspect(run, **options):
    return GradientFlowView().compute(run, GradientFlowOptions(**options), print, no_progress)


@pytest.mark.parametrize(
    ("mixer", "states"),
    [
        ("rnn", ["stack.blocks.0.mixer/h"]),
        ("lstm", ["stack.blocks.0.mixer/c", "stack.blocks.0.mixer/h"]),
        ("gru,attention", ["stack.blocks.0.mixer/h"]),
        ("attention", ["stack.blocks.0/features"]),
        ("mamba", ["stack.blocks.0/features"]),
        ("rwkv", ["stack.blocks.0/features"]),
        ("s5", ["stack.blocks.0/features"]),
    ],
)
def test_every_language_model(mixer, states):
    batching = "windows" if "attention" in mixer else "streams"
    run = language_run(TEXT, f"model.mixers={mixer}", f"task.batching={batching}")
    payload = inspect(run, steps=20)
    assert [each["state"] for each in payload.values["states"]] == states
    for each in payload.values["states"]:
        assert each["median"][0] == pytest.approx(1)
        assert each["median"][1] > 0, "earlier steps have a gradient"
        assert len(each["median"]) == 20
    assert len(payload.panels) == (4 if mixer == "rnn" else 1)
    assert all(weight.grad is None for weight in run.model.parameters())


def test_one_layer_of_attention_is_shown_from_its_inputs():
    run = language_run(TEXT, "model.mixers=attention", "task.batching=windows", "model.layers=1")
    (state,) = inspect(run).values["states"]
    assert state["state"] == "embedding/output"
    assert len(state["median"]) == 32, "no more than the context length"


def test_runs_beside_each_other(monkeypatch):
    run, other = language_run(TEXT), language_run(TEXT, "model.mixers=rnn")
    monkeypatch.setattr(LanguageRun, "other_run", lambda self, path: other)
    payload = inspect(run, with_=("b",), steps=9)
    lines = payload.panels[0]
    assert isinstance(lines, Lines)
    assert [(series.color, series.style) for series in lines.series][:2] == [(0, "line"), (0, "dotted")]
    assert len(payload.values["states"]) == 3
    facts = dict(payload.facts)
    W = torch.linalg.matrix_norm(other.model.stack.blocks[0].mixer.cell.weight_hidden.double(), 2).item()
    assert f"largest singular value {W:.3f}" in facts["W_hh of runs/small"]


@pytest.mark.parametrize(
    ("norm", "meaning"),
    [(0.9, "the gradient must vanish"), (1.1, "the gradient may explode, but need not")],
)
def test_the_largest_singular_value_is_necessary_for_explosion_but_not_sufficient(norm, meaning):
    run = language_run(TEXT, "model.mixers=rnn")
    cell = run.model.stack.blocks[0].mixer.cell
    with torch.no_grad():
        torch.nn.init.orthogonal_(cell.weight_hidden).mul_(norm)
    assert dict(inspect(run, steps=5).facts)["W_hh of runs/small"].endswith(f"{norm:.3f}: {meaning}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": "x"}, "no such layer; it has stack.blocks.0.mixer/c"),
        ({"steps": 0}, "--steps 0: expected a number from 1 on"),
        ({"data": "A"}, "at least 2 tokens"),
        ({"with_": ("no such run",)}, "no such run"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(UserError, match=message):
        inspect(language_run(TEXT), **options)


def test_a_text_of_two_tokens():
    (state, _) = inspect(language_run(TEXT), data="A ").values["states"]
    assert state["median"] == [1.0]
