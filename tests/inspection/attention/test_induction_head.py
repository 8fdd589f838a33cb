"""The view's numbers name an induction head that training makes (Olsson et al. 2022)."""

import math
from dataclasses import replace

import pytest
import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import functional as F

from foveal.core.progress import no_progress
from foveal.inspection.attention.compute import after_earlier_token, summarize_layer
from foveal.inspection.attention.view import AttentionOptions, AttentionView
from foveal.inspection.panels import Heatmap
from tests.support.attention_layers import layer_of
from tests.support.language_runs import LanguageRun, language_run

LETTERS = "ABCDEFGHIJKLMNOP"
SETTINGS = (
    *("model.mixers=attention", "task.batching=windows", "model.layers=2", "model.width=48"),
    *("model.attention.heads=2", "model.positions.kind=rotary", "model.feedforward=none"),
)
STEPS, ROWS, TOKENS, FIRST_KNOWN = 600, 32, 24, 12


def repeated(rows: int, generator: torch.Generator) -> Int[Tensor, "R T"]:
    """Return random letters, which repeat after 5 to 11; a row has each letter once in a period."""
    periods = torch.randint(5, 12, (rows, 1), generator=generator)
    letters = torch.rand(rows, len(LETTERS), generator=generator).argsort(1)
    return letters.gather(1, torch.arange(TOKENS + 1)[None] % periods)


@pytest.fixture(scope="module")
def run() -> LanguageRun:
    torch.manual_seed(0)
    run = language_run(LETTERS, *SETTINGS)
    model, generator = run.model.train(), torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(STEPS):
        tokens = repeated(ROWS, generator)
        logits = model.project(model(tokens[:, :-1], None)[0])[:, FIRST_KNOWN:]
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, FIRST_KNOWN + 1 :].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    assert loss.item() < 0.5, "the model has not learned to repeat"
    return run


def test_a_trained_induction_head_is_named(run: LanguageRun) -> None:
    """A head reads what followed the token before, and one below it the previous token."""
    tokens = repeated(1, torch.Generator().manual_seed(1))[0]
    text, view = "".join(LETTERS[token] for token in tokens), AttentionView()
    heads = view.compute(run, AttentionOptions(text=text), print, no_progress).to_json()["heads"]
    best = max(heads, key=lambda head: head["induction"])
    assert (best["layer"], best["induction"] > 0.75) == (1, True)
    assert max(head["previous"] for head in heads if head["layer"] == 0) > 0.5
    options = AttentionOptions(text=text, layer=str(best["layer"]), head=best["head"])
    payload = view.compute(run, options, print, no_progress)
    assert " of layer 1 looks at what followed the same token" in dict(payload.facts)["induction"]
    (values,) = (panel.array.values for panel in payload.panels if isinstance(panel, Heatmap))
    period = text.index(text[0], 1)
    queries = range(period, len(values))
    shares = [float(values[query][query - period + 1 :: -period].sum()) for query in queries]
    assert sum(shares) / len(shares) == pytest.approx(best["induction"], abs=1e-4)


def test_the_share_of_what_followed_an_earlier_token() -> None:
    """`abcab`: the second a reads the b after the first, the second b the c."""
    expected = torch.zeros(5, 5, dtype=torch.bool)
    expected[3, 1] = expected[4, 2] = True
    assert torch.equal(after_earlier_token("abcab", 0, 5), expected)
    assert torch.equal(after_earlier_token("abcab", 3, 2), expected[3:])
    weights = torch.zeros(2, 5, 5)
    weights[0, range(5), [0, 1, 2, 1, 2]] = 1
    weights[1, range(5), [0, 0, 1, 2, 3]] = 1  # the previous token
    layer = layer_of(weights, "causal", has_key_tokens=True)
    layer = replace(layer, keys=tuple("abcab"))
    induction, previous = summarize_layer(layer, 64).statistics
    assert (induction.induction, previous.induction, previous.previous) == (1, 0, 1)


def test_a_text_without_repetition_has_no_such_number() -> None:
    layer = layer_of(torch.eye(4)[None], "causal", has_key_tokens=True)
    (statistics,) = summarize_layer(layer, 64).statistics
    assert math.isnan(statistics.induction)
    (crossing,) = summarize_layer(layer_of(torch.eye(4)[None], "cross", has_key_tokens=True), 64).statistics
    assert math.isnan(crossing.induction)
