"""The input that a view looks at: as the model gets it, named, and scored as the objective scores it."""

from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.kill import own_cache
from foveal.core.errors import UserError
from foveal.data.core.batching import TokenBatch
from foveal.inspection.chosen_input import ChosenInput, InputOptions, choose_input, why_no_input
from tests.support.untrained_runs import KINDS, UntrainedRun, write_rows

FRAMED = ("audio-classification", "series-classification")
_made: dict[str, UntrainedRun] = {}


@pytest.fixture(autouse=True)
def here(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path_factory.getbasetemp() / "cache")))
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


def run_of(kind: str) -> UntrainedRun:
    if kind not in _made:
        Path(kind).mkdir()  # a folder of its own: several kinds write a folder of the same name
        with chdir(kind):
            _made[kind] = KINDS[kind]()
    return _made[kind]


def chosen(kind: str, **options: Any) -> ChosenInput:
    return choose_input(run_of(kind), InputOptions(**options), print)


@pytest.mark.parametrize("kind", KINDS)
def test_each_target_has_a_log_probability_and_they_add_up_to_the_loss(kind: str) -> None:
    run, example = run_of(kind), chosen(kind, row=0)
    assert why_no_input(run) == ""
    assert example.name == "test, row 0"
    assert example.reference
    with torch.inference_mode():
        scores = example.log_probabilities()
        output, _ = run.objective(example.batch, None)
    assert len(scores) == len(example.target)
    assert float(scores.sum()) == pytest.approx(-output.metrics["loss"][0], rel=1e-4)
    if example.image is None:
        batch = example.batch
        read = batch.inputs if isinstance(batch, TokenBatch) else batch.columns["source"]
        assert len(example.source) == read.shape[1]


def test_names_are_tokens_words_times_and_pixels() -> None:
    assert "".join(chosen("language-model").source)[1:] == "".join(chosen("language-model").target)[:-1]
    assert "".join(chosen("translation", text="a cat").source) == "a cat<stop>"
    assert chosen("word-tagging").source[0] == "the"
    assert chosen("audio-classification").source[:3] == ("0.00 s", "0.01 s", "0.02 s")
    assert chosen("series-classification").source[:2] == ("step 0", "step 1")
    image = chosen("image-classification").image
    assert image is not None
    assert image.shape == (16, 16, 3)
    assert chosen("vqa").source[-1] == "<stop>"
    assert chosen("vqa").image is not None
    assert chosen("captioning").target[-1] == "<stop>"


@pytest.mark.parametrize(
    "kind", ["language-model", "text-classification", "tagging", "translation", "n-grams"]
)
def test_the_answer_of_a_typed_text_is_the_models_own(kind: str) -> None:
    example = chosen(kind, text="the old cat")
    assert (example.reference, example.name) == (None, "the old cat")
    assert len(example.log_probabilities()) == len(example.target) > 0
    one = chosen(kind, text="a")
    assert len(one.log_probabilities()) == len(one.target)


def test_other_data_need_no_references() -> None:
    write_rows("other.jsonl", text=["a cat sees the dog"])
    example = chosen("text-classification", data="other.jsonl")
    assert (example.reference, example.name) == (None, "other.jsonl, row 0")
    assert "".join(example.source).startswith("a cat")
    Path("one.txt").write_text("the big red house")
    assert chosen("language-model", data="one.txt").reference == "he big red house"


def test_gradients_reach_the_weights_where_they_are_on() -> None:
    example = chosen("translation")
    (-example.log_probabilities().sum()).backward()
    assert any(weight.grad is not None for weight in run_of("translation").model.parameters())


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("translation", {"row": 99}, "--row 99: test has"),
        ("translation", {"row": -1}, "--row -1"),
        ("language-model", {"text": " "}, "--text is empty"),
        ("image-classification", {"text": "cat"}, "reads more than a text"),
        ("translation", {"text": "a", "row": 1}, "leave out"),
        ("translation", {"text": "the cat " * 900}, "reads at most"),
        ("tagging", {"text": "ж" * 9}, "do not occur in the training text"),
    ],
)
def test_what_does_not_fit_is_one_line(kind: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        chosen(kind, **options)
    assert "\n" not in str(error.value)


def test_a_task_without_such_inputs_says_so() -> None:
    other = replace(run_of("translation"), objective=None)
    assert "(translation)" in why_no_input(other)


def test_characters_that_the_model_does_not_see_are_told() -> None:
    """The picture of a typed text lacks them, and nothing in it shows that."""
    lines: list[str] = []
    for kind in ("language-model", "transduction", "word-tagging"):
        choose_input(run_of(kind), InputOptions(text="the big 😀 cat"), lines.append)
        choose_input(run_of(kind), InputOptions(text="the big cat"), lines.append)
    seen = "--text: 1 characters that the training text does not have: '😀' (1)"
    assert lines == [f"{seen}; they are left out"] * 2 + [seen]
