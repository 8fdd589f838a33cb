"""The view `cells` of every kind of language model, and its options."""

import numpy as np
import pytest
import torch

from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.inspection.cells.view import CellsOptions, CellsView
from tests.support.language_runs import language_run

TEXT = 'A line (of 12) words.\n\n  "if a:" 😀 שלום # no\n' * 20


def inspect(run, **options):
    return CellsView().compute(run, CellsOptions(**options), print, no_progress)


@pytest.mark.parametrize(
    "mixer", ["rnn", "gru", "lstm", "mamba", "rwkv", "s5", "attention", "lstm,attention"]
)
def test_every_language_model(mixer):
    batching = "windows" if "attention" in mixer else "streams"
    torch.manual_seed(0)
    run = language_run(TEXT, f"model.mixers={mixer}", f"task.batching={batching}")
    assert CellsView().fits(run) == ""
    before = {name: weight.clone() for name, weight in run.model.state_dict().items()}
    payload = inspect(run)
    (text,) = payload.drawn()
    assert len(payload.facts) == 3
    assert text.array.values.shape == (3, len(text.tokens))
    assert np.abs(text.array.values).max() <= text.high
    assert "".join(text.tokens) in TEXT
    for cell in payload.values["cells"]:
        assert np.isfinite([cell["r"], cell["control"]]).all()
    ablations = CellsView().ablate(run, CellsOptions(find="digit"), print)
    assert len(ablations) == 1
    assert all(torch.equal(before[name], weight) for name, weight in run.model.state_dict().items())
    assert not any(module._forward_hooks for module in run.model.modules())


@pytest.fixture(scope="module")
def run():
    return language_run(TEXT)


@pytest.mark.parametrize("text", ["A", "\n", "😀 שלום", TEXT])
def test_any_text(run, text):
    (panel,) = inspect(run, text=text, unit=3).drawn()
    assert "".join(panel.tokens) == text


def test_the_typed_text_has_the_values_of_capture(run):
    (panel,) = inspect(run, text="words", unit=3, layer="stack.blocks.0.mixer/c").drawn()
    block = run.model.stack.blocks[0]
    tokens = torch.from_numpy(run.processor.encode("words"))
    state, values = block.init_state(1), []
    for token in tokens:
        _, state, _ = block(run.model.embedding(token[None, None]), state)
        values.append(state["c"][0, 3].tanh().item())
    assert panel.array.values[0] == pytest.approx(values, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": ""}, "--text is empty"),
        ({"text": "é"}, "the training text has no 'é'"),
        ({"layer": "x"}, "no such layer; it has stack.blocks.0.mixer/c, stack.blocks.0.mixer/h"),
        ({"unit": 8}, "stack.blocks.1.mixer/h has 8 units, counted from 0"),
        ({"unit": -1}, "stack.blocks.1.mixer/h has 8 units"),
        ({"find": "quote"}, "no such probe"),
        ({"find": "/ZZZ/"}, "/ZZZ/ does not occur in both halves"),
        ({"data": "A line"}, "6 tokens are too few to search units in"),
    ],
)
def test_wrong_options(run, options, message):
    with pytest.raises(UserError, match=message):
        inspect(run, **options)
