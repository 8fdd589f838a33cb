"""Filling the gaps of a text with a masked language model."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import foveal
from foveal.data.text.special_tokens import SpecialTokens
from tests.support.command_line import refuse, succeed

SMALL = (
    *("model.encoder.width=16", "model.encoder.layers=1"),
    *("data.tokenizer=character", "data.context_length=32", "data.batch_tokens=256", "data.max_length=40"),
    *("model.encoder.positions.kind=learned", "optimizer.lr=3e-2", "training.evaluate_every=30"),
)


@pytest.fixture(scope="module")
def filler(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of task `masked-lm`, not to be changed."""
    run = tmp_path_factory.mktemp("filler") / "run"
    text = finished.parent / "text.txt"
    succeed("train", text, "--task", "masked-lm", *SMALL, "--budget", "30steps", "--run", run)
    yield run
    shutil.rmtree(run)


def filled(run: Path, *arguments: object) -> list[dict[str, Any]]:
    samples: list[dict[str, Any]] = json.loads(succeed("generate", run, *arguments, "--json").out)["samples"]
    return samples


def test_the_likeliest_tokens(filler: Path) -> None:
    """Against the probabilities of every place of the source, read by hand."""
    prompt = "the c[MASK]t and[MASK][MASK]he r"
    (found,) = filled(filler, "--prompt", prompt, "--best", "3")
    loaded = foveal.load(filler)
    letters, marks = loaded.processor.vocabulary, SpecialTokens(loaded.processor.size)
    places = [5, 11, 12]
    source = [marks.mask if i in places else letters.index(x) for i, x in enumerate("the c.t and..he r")]
    with torch.inference_mode():
        memory, _ = loaded.model.encoder(torch.tensor([[*source, marks.eos]]))
        features, _ = loaded.model.head(memory, torch.ones(1, len(source) + 1, dtype=torch.bool))
        chances = loaded.model.head.project(features).softmax(1)[places, : marks.size]
    text = list("the c.t and..he r")
    for place, row, gap in zip(places, chances, found["gaps"], strict=True):
        right = row.sort(descending=True)
        assert [guess["text"] for guess in gap] == [letters[i] for i in right.indices[:3]]
        expected = pytest.approx(right.values[:3].tolist(), rel=1e-4)
        assert [guess["probability"] for guess in gap] == expected
        text[place] = gap[0]["text"]
    assert found["prompt"] == prompt
    assert found["text"] == "".join(text)


def test_on_the_screen(filler: Path) -> None:
    prompt = "the c[MASK]t and[MASK]the"
    (found,) = filled(filler, "--prompt", prompt, "--best", "2")
    told = succeed("generate", filler, "--prompt", prompt)
    assert told.out == f"{found['text']}\n"
    told = succeed("generate", filler, "--prompt", prompt, "--best", "2")
    first, *gaps = told.out.splitlines()
    assert first == found["text"]
    for number, (line, guesses) in enumerate(zip(gaps, found["gaps"], strict=True), 1):
        one, two = (f"{guess['text']!r} {guess['probability']:.3f}" for guess in guesses)
        assert line == f"    gap {number}: {one}, {two}"


def test_a_file_of_texts(filler: Path) -> None:
    """In any order and number, as each alone."""
    prompts = ["the c[MASK]t", "a[MASK]d the [MASK]at ran", "[MASK]"]
    Path("some.txt").write_text("".join(f"{prompt}\n" for prompt in prompts))
    together = filled(filler, "--input", "some.txt")
    alone = [filled(filler, "--prompt", prompt)[0] for prompt in prompts]
    assert [one["text"] for one in together] == [one["text"] for one in alone]
    assert [len(one["gaps"]) for one in together] == [1, 2, 1]


REFUSED = {
    "--prompt the": "text 1 has no gap: write [MASK] where a token is to be predicted",
    "--prompt [MASK]t --tokens 5": "leave out all but --prompt, --input, --best",
    "--prompt [MASK]t --temperature 0.5": "leave out all but --prompt, --input, --best",
    "--prompt [MASK]t --beam 2": "leave out all but --prompt, --input, --best",
    "--prompt [MASK]t --attention a.png": "leave out all but --prompt, --input, --best",
    "--prompt Q[MASK]": "the training text has no 'Q'",
    f"--prompt {'t' * 40}[MASK]": "text 1 has 42 tokens, the model reads at most 40: cut it",
}


@pytest.mark.parametrize("options", REFUSED)
def test_what_can_not_be_filled(filler: Path, options: str) -> None:
    assert REFUSED[options] in refuse("generate", filler, *options.split())
