"""Of a linear model, gradient x embedding and removal are the same, and known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.inspection.chosen_input import choose_input
from foveal.inspection.panels import ColoredText
from foveal.inspection.payload import Payload
from foveal.inspection.registry import VIEWS
from foveal.inspection.word_saliency.compute import gradient_times_embedding, removal, scores_without
from tests.support.image_session import image_session
from tests.support.untrained_runs import KINDS, UntrainedRun

TOKENS = torch.tensor([[3, 0, 4, 4, 1]])


def classifier(inner: Callable[[Tensor], Tensor]) -> tuple[Callable[[int], Tensor], nn.Embedding, Tensor]:
    """Return a score of tokens, its embedding and its weights."""
    embedding, weights = nn.Embedding(6, 7).double(), torch.randn(5, 7, dtype=torch.float64)
    return (
        lambda count: inner((embedding(TOKENS.expand(count, -1)) * weights).sum(2)).sum(1),
        embedding,
        weights,
    )


def test_of_a_linear_model_both_are_its_parts() -> None:
    score, embedding, weights = classifier(lambda parts: parts + 2)
    expected = (embedding.weight.detach()[TOKENS[0]] * weights).sum(1)
    torch.testing.assert_close(gradient_times_embedding(score, embedding), expected)
    torch.testing.assert_close(removal(score, embedding, 5, torch.device("cpu")), expected)
    assert not embedding._forward_hooks


def test_removal_as_one_token_after_the_other() -> None:
    score, embedding, weights = classifier(torch.tanh)
    parts = (embedding.weight.detach()[TOKENS[0]] * weights).sum(1)
    torch.testing.assert_close(removal(score, embedding, 5, torch.device("cpu")), parts.tanh())
    slopes = 1 - parts.tanh().square()
    torch.testing.assert_close(gradient_times_embedding(score, embedding), parts * slopes)
    removed = torch.rand(70, 5) < 0.5
    expected = (parts.tanh() * ~removed).sum(1)
    torch.testing.assert_close(scores_without(score, embedding, removed), expected)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> UntrainedRun:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("texts"))
        made = KINDS["text-classification"]()
    torch.nn.init.normal_(made.model.head.projection.weight)
    return made


def compute(run: UntrainedRun, **options: Any) -> Payload:
    view = VIEWS["word-saliency"]
    assert view.fits(run) == ""
    return view.compute(run, view.Options(**options), lambda _: None, no_progress)


def text_of(payload: Payload) -> ColoredText:
    (panel,) = payload.panels
    assert isinstance(panel, ColoredText)
    return panel


@pytest.mark.parametrize("options", [{}, {"text": "t"}, {"text": "the old 🙂 שלום"}])
def test_each_token_has_its_number(run: UntrainedRun, options: dict[str, Any]) -> None:
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    payload = compute(run, **options)
    panel = text_of(payload)
    assert np.isfinite(panel.array.values).all()
    assert np.abs(panel.array.values).max() == panel.high > 0
    assert all(torch.equal(value, before[name]) for name, value in run.model.state_dict().items())
    assert not any(module._forward_hooks for module in run.model.modules())


def test_the_numbers_are_those_of_the_class(run: UntrainedRun) -> None:
    """The logit without a token is that of a forward pass in which its vector is 0."""
    label = run.objective.labels[1]
    payload, view = compute(run, text="the old", label=label), VIEWS["word-saliency"]
    batch = choose_input(run, view.Options(text="the old"), lambda _: None).batch
    tokens, lengths = batch.columns["source"], batch.lengths["source"]
    encoder = run.model.encoder

    def logit(removed: int | None) -> float:
        vectors = encoder.embedding(tokens)
        if removed is not None:
            vectors[0, removed] = 0
        memory, _ = encoder.encode_vectors(encoder.embedding_norm(vectors), lengths)
        return float(run.model.head.project(run.model.head(memory)[0])[0, 1])

    with torch.no_grad():
        whole = logit(None)
        expected = [whole - logit(token) for token in range(tokens.shape[1])]
    np.testing.assert_allclose(text_of(payload).array.values[1], expected, atol=1e-5)
    assert payload.values["logit"] == pytest.approx(whole, abs=1e-5)


def test_removed_tokens_change_the_log_probability(run: UntrainedRun) -> None:
    view = VIEWS["word-saliency"]
    first, random = view.ablate(run, view.Options(), lambda _: None)
    assert first.before == random.before < 0
    assert first.after != random.after
    assert first.outcome == compute(run).values["label"]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"label": "nobody"}, "--label nobody"), ({"text": " "}, "--text is empty"), ({"row": 99}, "--row 99")],
)
def test_options_that_do_not_fit(run: UntrainedRun, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        compute(run, **options)


def test_images_are_refused() -> None:
    run = image_session("model.encoder.network=linear", images=1)
    assert "needs a network that labels texts" in VIEWS["word-saliency"].fits(run)
