"""Views of written texts, on an untrained run of each kind: an input gives a payload, or one plain line."""

import json
from typing import Any

import numpy as np
import pytest
import torch

from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.generation.sampling import Sampling
from foveal.generation.text_stream import collect_texts, generate_text
from foveal.inspection.beam_tree.view import BeamTreeView
from foveal.inspection.candidates.view import CandidatesView
from foveal.inspection.contributions.view import ContributionsView
from foveal.inspection.payload import Payload
from tests.support.untrained_runs import KINDS, UntrainedRun

VIEWS: dict[str, Any] = {
    "candidates": CandidatesView(),
    "beam-tree": BeamTreeView(),
    "contributions": ContributionsView(),
}
WRITERS = ("language-model", "n-grams", "translation", "captioning")
_made: dict[str, UntrainedRun] = {}


@pytest.fixture(autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


def run_of(kind: str) -> UntrainedRun:
    if kind not in _made:
        _made[kind] = KINDS[kind]()
    return _made[kind]


def payload_of(view: str, kind: str, **options: Any) -> Payload:
    run, chosen = run_of(kind), VIEWS[view]
    assert chosen.fits(run) == ""
    payload: Payload = chosen.compute(run, chosen.Options(**options), lambda line: None, no_progress)
    json.dumps(payload.to_json(), allow_nan=False)
    return payload


@pytest.mark.parametrize("kind", WRITERS)
def test_each_run_that_writes_has_each_view(kind: str) -> None:
    before = {name: weight.clone() for name, weight in run_of(kind).model.state_dict().items()}
    steps = payload_of("candidates", kind, tokens=4).values["steps"]
    assert 1 <= len(steps) <= 4
    assert sum(one["log_probability"] for one in steps) == pytest.approx(
        payload_of("candidates", kind, tokens=4).values["log_probability"]
    )
    assert payload_of("beam-tree", kind, tokens=3, beam=2).values["beam"] == 2
    values = np.array(payload_of("contributions", kind, tokens=3).values["contributions"])
    assert np.isfinite(values).all()
    (cost,) = VIEWS["contributions"].ablate(
        run_of(kind), VIEWS["contributions"].Options(tokens=3), lambda line: None
    )
    sums = values.sum(0)
    assert cost.before - cost.after == pytest.approx(sums[np.abs(sums).argmax()], abs=1e-9)
    assert all(weight.equal(before[name]) for name, weight in run_of(kind).model.state_dict().items())


def test_a_continuation_is_that_of_generate() -> None:
    """With the same seed: the same tokens and log-probability."""
    run = run_of("language-model")
    (text,) = collect_texts(generate_text(run.model, run.processor, ["the old"], 5, Sampling(0.8, seed=2)))
    values = payload_of("candidates", "language-model", text="the old", tokens=5, seed=2).values
    assert tuple(one["token"] for one in values["steps"]) == text.tokens
    assert values["log_probability"] == pytest.approx(text.log_probability, abs=1e-5)


def test_a_target_is_that_of_the_beam_search() -> None:
    run = run_of("translation")
    text = "the old red cat"
    values = payload_of("candidates", "translation", text=text).values
    answer = run.task.predict_texts([text], 1, no_progress)[0].answer
    tokens = [one["token"] for one in values["steps"]]
    assert values["log_probability"] / len(tokens) == pytest.approx(answer.log_probability, abs=1e-5)
    best = payload_of("beam-tree", "translation", text=text, tokens=99).values
    assert best["hypotheses"][best["best"]]["tokens"] == tokens
    values = payload_of("contributions", "translation", text=text, tokens=99).values
    assert values["log_probability"] == pytest.approx(
        best["hypotheses"][best["best"]]["log_probability"], abs=1e-5
    )


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    "text", ["a", "e\u0301the", "the red cat sees a dog ( \u05e9\u05dc\u05d5\u05dd \U0001f600 )"]
)
def test_one_letter_and_letters_of_no_training_text(view: str, text: str) -> None:
    payload_of(view, "translation", text=text, tokens=2)
    payload_of(view, "language-model", text=text, tokens=2)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": " "}, "--text is empty"),
        ({"tokens": 0}, "--tokens 0"),
        ({"row": 999}, "--row 999"),
        ({"text": "the cat " * 900}, "reads at most"),
    ],
)
def test_what_does_not_fit_is_one_line(view: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        payload_of(view, "translation", **options)
    assert "\n" not in str(error.value)


def test_options_that_contradict_each_other() -> None:
    with pytest.raises(UserError, match="leave out --temperature"):
        payload_of("candidates", "translation", beam=2, temperature=1.0)
    with pytest.raises(UserError, match="--top 0"):
        payload_of("candidates", "translation", top=0)
    with pytest.raises(UserError, match="--beam 0"):
        payload_of("beam-tree", "translation", beam=0)


@pytest.mark.parametrize("view", VIEWS)
def test_a_run_that_writes_nothing_says_so(view: str) -> None:
    for kind in ("text-classification", "masked-lm", "vqa"):
        assert "writes no text" in VIEWS[view].fits(run_of(kind)) or "several" in VIEWS[view].fits(
            run_of(kind)
        )


def test_patches_and_frames_have_names() -> None:
    values = payload_of("contributions", "captioning", tokens=2).values
    rows, columns = values["parts"][-1].split(",")
    assert len(values["parts"]) == int(rows) * int(columns)
    assert values["baseline"] == "the mean color of the image"
    assert torch.is_grad_enabled()
