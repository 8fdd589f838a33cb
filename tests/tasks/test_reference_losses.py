"""Baselines by the loss, or by the task's own walks: of hidden tokens, drawings and navigation."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from foveal.data.core.batching import ExampleBatch
from foveal.tasks.navigation.random_walk import WALKS_PER_ROW, random_walks_arrive
from foveal.tasks.shapes.hidden_tokens import window_tokens
from tests.support.command_line import succeed
from tests.support.labeled_images import SMALL
from tests.support.navigation_episodes import CORRIDOR, LONGER, encode_episodes

TINY_DRAW = (*SMALL, "--model", "draw", "model.width=16", "task.steps=3", "task.latent_size=4")


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def trained(data: str, *options: str) -> tuple[dict[str, Any], str]:
    told = succeed("train", data, *options, "--run", "run", "--json", "--budget", "1steps")
    return json.loads(told.out), told.err


def masked_text(text: str) -> tuple[dict[str, Any], str]:
    Path("text.txt").write_text(text)
    return trained(
        *("text.txt", "--task", "masked-lm", "data.tokenizer=character", "data.context_length=32"),
        *("data.batch_tokens=64", "model.encoder.width=8"),
    )


def test_hidden_tokens_by_their_counts() -> None:
    """In a random order of as many a, b, c and d, a token is known by the counts of four, and no better."""
    letters = torch.randint(4, (12_000,), generator=torch.Generator().manual_seed(0))
    result, told = masked_text("".join("abcd"[letter] for letter in letters))
    baseline = result["baseline"]
    assert baseline["name"].startswith("counts of characters")
    assert baseline["loss"] == pytest.approx(math.log(4), abs=0.01)
    assert "this model is no better than counts of characters" in told


def test_hidden_tokens_by_the_visible_token_before() -> None:
    """After each letter comes the next: who sees the letter before knows the hidden one. 15 % are hidden, and
    so is the one before of about as many, and of a window's first."""
    result, _ = masked_text("abcdefgh" * 1500)
    baseline = result["baseline"]
    assert baseline["name"] == "counts of characters, and of pairs with the one before"
    unseen = baseline["loss"] / math.log(8)
    assert 0.1 < unseen < 0.25


def test_the_token_before_is_that_of_the_window_and_visible() -> None:
    class Batches:
        per_epoch = 1

        def batch(self, epoch: int, index: int) -> ExampleBatch:
            columns = {  # 9 begins and ends a window, 0 pads the second
                "target": torch.tensor([[9, 1, 2, 3, 9], [9, 4, 5, 9, 0]]),
                "hidden": torch.tensor([[0, 1, 1, 1, 0], [0, 0, 1, 0, 0]]),
            }
            return ExampleBatch(
                torch.arange(2), columns, {"source": torch.tensor([5, 4])}, torch.tensor([5, 4])
            )

    tokens, hidden, sees = window_tokens(Batches(), 9)
    assert tokens.tolist() == [1, 2, 3, 4, 5]
    assert hidden.tolist() == [True, True, True, False, True]
    assert sees.tolist() == [False, False, False, False, True]


def test_drawings_by_independent_pixels() -> None:
    """Half of the pixels are always black, half are white in every second image: ln 2 nats each."""
    chance = np.random.default_rng(0)
    Path("noise").mkdir()
    for number in range(400):
        image = np.zeros((12, 12), np.uint8)
        image[:6] = 255 * chance.integers(0, 2, (6, 12))
        Image.fromarray(image).save(f"noise/{number}.png")
    result, told = trained("noise", *TINY_DRAW)
    baseline = result["baseline"]
    assert baseline["name"] == "independent pixels, each white as often as in training"
    assert baseline["loss"] == pytest.approx(72 * math.log(2), rel=0.02)
    assert "this model is no better than independent pixels" in told


def test_walks_at_random_arrive_as_often_as_their_moves_say() -> None:
    """Of CORRIDOR's moves half are forward, half are stops: a walk goes on at least a step, and stops there,
    in half of the cases, for the wall stops it; LONGER's goal is two steps away."""
    train, processor = encode_episodes(CORRIDOR)
    held_out, _ = encode_episodes(*[CORRIDOR] * 200, *[LONGER] * 200, processor=processor)
    arrived = np.array(random_walks_arrive(train.examples, held_out.examples, 12, seed=0))
    near, far = arrived.reshape(2, 200 * WALKS_PER_ROW).mean(1)
    assert near == pytest.approx(1 / 2, abs=0.03)
    assert far == pytest.approx(1 / 4, abs=0.03)
    again = random_walks_arrive(train.examples, held_out.examples, 12, seed=0)
    assert again == arrived.tolist()


def test_walks_that_may_not_stop_do_not_arrive() -> None:
    train, _ = encode_episodes(LONGER)
    arrived = random_walks_arrive(train.examples, train.examples, 2, seed=1)
    assert not any(arrived)  # two moves forward, and no third for the stop
