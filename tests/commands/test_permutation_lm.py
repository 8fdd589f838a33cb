"""A permutation language model from a text to filled gaps."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import foveal
from foveal.data.text.special_tokens import SpecialTokens
from tests.support.command_line import TINY_MODEL, refuse, succeed

SMALL = ("--task", "permutation-lm", *TINY_MODEL[:2], *TINY_MODEL[3:], "task.heads=2", "optimizer.lr=3e-2")


@pytest.fixture(scope="module")
def filler(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of task `permutation-lm`, not to be changed."""
    run = tmp_path_factory.mktemp("filler") / "run"
    text = finished.parent / "text.txt"
    succeed("train", text, *SMALL, "data.tokenizer=character", "--budget", "30steps", "--run", run)
    yield run
    shutil.rmtree(run)


def filled(run: Path, *arguments: object) -> list[dict[str, Any]]:
    samples: list[dict[str, Any]] = json.loads(succeed("generate", run, *arguments, "--json").out)["samples"]
    return samples


def test_each_gap_is_predicted_from_all_other_tokens(filler: Path) -> None:
    """In texts with different numbers of gaps, as each gap alone, in whose place the others are not seen."""
    prompts = ["the c[MASK]t and[MASK][MASK]he r", "a[MASK]d the cat"]
    Path("some.txt").write_text("".join(f"{prompt}\n" for prompt in prompts))
    loaded = foveal.load(filler)
    letters, special = loaded.processor.vocabulary, SpecialTokens(loaded.processor.size)
    for prompt, sample in zip(prompts, filled(filler, "--input", "some.txt", "--best", "2"), strict=True):
        plain = prompt.replace("[MASK]", ".")
        gaps = [place for place, letter in enumerate(plain) if letter == "."]
        tokens = [
            special.mask if place in gaps else letters.index(plain[place]) for place in range(len(plain))
        ]
        source = torch.tensor([[*tokens, special.eos]])
        ranks = (source == special.mask).long()
        for place, guesses in zip(gaps, sample["gaps"], strict=True):
            with torch.inference_mode():
                logits = loaded.model(source, ranks, torch.tensor([[place]]))[0, 0]
            likeliest = logits.softmax(0)[: special.size].topk(2)
            assert [guess["text"] for guess in guesses] == [letters[i] for i in likeliest.indices]
            expected = pytest.approx(likeliest.values.tolist(), rel=1e-4)
            assert [guess["probability"] for guess in guesses] == expected


def test_evaluated_and_continued(filler: Path) -> None:
    result = json.loads(succeed("evaluate", filler, "--json").out)
    assert 0 < result["loss"] < 10
    assert result["perplexity"] == pytest.approx(torch.tensor(result["loss"]).exp().item(), rel=1e-4)
    shutil.copytree(filler, "copy")
    succeed("resume", "copy", "--budget", "32steps")
    assert json.loads(succeed("evaluate", "copy", "--json").out)["loss"] != result["loss"]


REFUSED = {
    "model.width=15": "model.width=15 is not even, or no multiple of task.heads=2",
    "task.heads=3": "model.width=16 is not even, or no multiple of task.heads=3",
    "model.mixers=gru": "model.mixers is not read, since task.name=permutation-lm",
    "data.context_length=2": "data.context_length=2 leaves no room for text",
}


@pytest.mark.parametrize("setting", REFUSED)
def test_settings_that_do_not_fit(finished: Path, setting: str) -> None:
    text = finished.parent / "text.txt"
    assert REFUSED[setting] in refuse("train", text, *SMALL, "data.tokenizer=character", setting)
