"""Language models that look up n-grams, from the command line, and the n-gram baseline beside them."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import foveal
from foveal.layers import ngram_lookup
from foveal.layers.ngram_lookup import NgramLookup
from foveal.tasks import language_model
from tests.support.command_line import refuse, succeed
from tests.support.killed_runs import check_killed_run

SETTINGS = (
    *("model.width=16", "model.embedding_width=8", "data.context_length=16", "data.batch_tokens=64"),
    *("model.ngram_lookup=8", "optimizer.lr=0.01", "training.evaluate_every=1000"),
)


@pytest.fixture(autouse=True)
def _text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    write_words()


def write_words() -> None:
    """Write 900 words, of 30 different ones of nine random letters."""
    draw = torch.Generator().manual_seed(0)
    words = ["".join(chr(97 + int(c)) for c in torch.randint(26, (9,), generator=draw)) for _ in range(30)]
    order = torch.randint(30, (900,), generator=draw).tolist()
    Path("words.txt").write_text("\n\n".join(words[index] for index in order))


def trained(*options: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(
        succeed("train", "words.txt", "--model", "lstm", *SETTINGS, "--run", "run", "--json", *options).out
    )
    return result


@pytest.mark.slow
def test_trained_evaluated_and_generated() -> None:
    result = trained("--budget", "20steps")
    again = json.loads(succeed("evaluate", "run", "--json").out)
    assert again["loss"] == pytest.approx(result["loss"])
    assert "bits_per_character" in result["baseline"]
    whole = succeed("generate", "run", "--prompt", "abc", "--tokens", "20", "--temperature", "0").out
    beam = succeed("generate", "run", "--prompt", "abc", "--tokens", "20", "--beam", "1").out
    assert whole == beam
    text = foveal.load("run").model.lookup.text
    assert int(text.count_nonzero()) > 5000


@pytest.mark.slow
def test_words_seen_before_are_told_by_their_first_letters() -> None:
    losses = []
    for run, longest in ("with", 8), ("without", 0):
        result = succeed(
            *("train", "words.txt", "--model", "lstm", *SETTINGS, f"model.ngram_lookup={longest}"),
            *("model.width=64", "data.batch_tokens=512", "--run", run, "--budget", "100steps", "--json"),
        )
        losses.append(json.loads(result.out)["loss"])
    assert losses[0] < 0.7 * losses[1]


@pytest.mark.slow
def test_a_killed_run_ends_like_one_that_was_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = ("--model", "lstm", *SETTINGS)
    check_killed_run(tmp_path, monkeypatch, write_words, "words.txt", settings)


def test_the_screen_tells_of_a_network_that_is_trained() -> None:
    told = succeed("train", "words.txt", "--model", "lstm", *SETTINGS, "--budget", "1steps").err
    assert "expected" in told
    assert "closed form" not in told


def test_too_long_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_model, "MOST_LOOKED_UP", 100)
    error = refuse("train", "words.txt", "--model", "lstm", *SETTINGS, "--budget", "1steps")
    assert "set model.ngram_lookup=0" in error


def test_no_such_length() -> None:
    error = refuse("train", "words.txt", "--model", "lstm", "model.ngram_lookup=1")
    assert "model.ngram_lookup" in error
    assert "2 or more" in error


@pytest.mark.slow
def test_each_text_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorting the n-grams takes seconds; the cost, the training and the scores have the same batches."""
    looked_up: list[tuple[str, int]] = []
    of_training, of_held_out = ngram_lookup.training_inputs, NgramLookup.held_out_inputs

    def training_inputs(tokens: Any, longest: int) -> Any:
        looked_up.append(("train", len(tokens)))
        return of_training(tokens, longest)

    def held_out_inputs(lookup: NgramLookup, tokens: Any) -> Any:
        looked_up.append(("held out", len(tokens)))
        return of_held_out(lookup, tokens)

    monkeypatch.setattr(language_model, "training_inputs", training_inputs)
    monkeypatch.setattr(NgramLookup, "held_out_inputs", held_out_inputs)
    trained("--budget", "2steps", "training.evaluate_every=1")
    assert [name for name, _ in looked_up] == ["train", "held out", "held out"]
    assert len({*looked_up}) == 3
