"""ELMo from raw text to labels: what a bidirectional language model passes on, and what stays."""

import json
from pathlib import Path

import torch

from tests.support.command_line import refuse, succeed
from tests.support.reviews import reviews
from tests.support.saved_weights import saved_weights

SMALL = (
    "data.tokenizer=character",
    "data.context_length=16",
    "data.batch_tokens=64",
    "model.encoder.width=8",
)


def test_frozen_layers_stay_and_their_mixture_learns() -> None:
    """From raw text to labels: `--from RUN training.freeze=encoder`."""
    Path("notes.txt").write_text("the cat sat on the mat and saw a rat. " * 40)
    first = ("--task", "bidirectional-lm", *SMALL, "--budget", "4steps", "--run", "first", "--json")
    assert 0 < json.loads(succeed("train", "notes.txt", *first).out)["loss"] < 5
    assert "its layers are features of other tasks" in refuse("generate", "first", "--prompt", "a")
    before = saved_weights("first")
    again = ("--from", "first", "--task", "text-classification", "optimizer.lr=0.1", "--budget", "6steps")
    succeed("train", reviews(), *again, "training.freeze=encoder", "training.keep=last", "--run", "frozen")
    after = saved_weights("frozen")
    layers = {name for name in before if name.startswith("encoder.")}
    assert layers
    for name in layers:
        assert torch.equal(after[name.replace("encoder.", "encoder.layers.", 1)], before[name]), name
    assert after["encoder.mix.scores"].abs().min() > 1e-3
    assert abs(float(after["encoder.mix.gamma"]) - 1) > 1e-3


def test_an_odd_width() -> None:
    Path("notes.txt").write_text("the cat sat on the mat. " * 40)
    why = refuse("train", "notes.txt", "--task", "bidirectional-lm", *SMALL[:3], "model.encoder.width=7")
    assert "two directions need an even width, not model.encoder.width=7" in why
