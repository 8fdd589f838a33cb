"""The part of a text that is shown: where the probes change most, in the half that is reported."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from foveal.data.text.tokenizers import CharacterTokenizer
from foveal.inspection.cells import held_out
from foveal.inspection.cells.held_out import TOKENS_BEFORE, HeldOutText, read_held_out
from foveal.inspection.cells.probes import PROBES
from foveal.inspection.cells.searched_text import SHOWN_TOKENS, liveliest

pytestmark = pytest.mark.usefixtures("types_unchecked")


def alternating(length: int) -> Tensor:
    return torch.arange(length) % 2 * 1.0


def test_the_liveliest_part_is_that_of_most_probes() -> None:
    """A probe counts as much whatever its scale, and a probe of rare high values not more than once."""
    labels = torch.zeros(3 * SHOWN_TOKENS, 3)
    first, second, third = torch.split(labels, SHOWN_TOKENS)
    first[:3, 0] = 1000
    second[:, 1] = alternating(SHOWN_TOKENS)
    second[:, 2] = alternating(SHOWN_TOKENS) / 5
    third[:, 2] = alternating(SHOWN_TOKENS)
    assert liveliest(labels) == slice(SHOWN_TOKENS, 2 * SHOWN_TOKENS)


def test_a_part_of_the_reported_half_is_shown_after_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokens = torch.arange(12 * SHOWN_TOKENS).view(4, 3 * SHOWN_TOKENS)
    labels = torch.zeros(4, 3 * SHOWN_TOKENS, 1)
    labels[0, :SHOWN_TOKENS, 0] = alternating(SHOWN_TOKENS)
    labels[2, SHOWN_TOKENS : 2 * SHOWN_TOKENS, 0] = alternating(SHOWN_TOKENS)
    calls: list[Any] = []
    monkeypatch.setattr(HeldOutText, "_pieces", lambda self, *arguments: calls.append(arguments))
    none: Any = None
    text = HeldOutText(none, "valid", tokens, labels)
    text.shown(["stack"], [0])
    ((before, shown, _),) = calls
    start = 7 * SHOWN_TOKENS
    assert text.reported[0, 0] == 6 * SHOWN_TOKENS
    assert shown.tolist() == [*range(start, start + SHOWN_TOKENS)]
    assert before.tolist() == [*range(start - TOKENS_BEFORE, start)]


def test_the_beginning_is_searched_and_the_end_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = CharacterTokenizer("ab\n")
    part = np.random.default_rng(0).integers(0, 3, 1000)
    monkeypatch.setattr(held_out, "held_out_examples", lambda *_: (part, "valid"))
    run: Any = SimpleNamespace(processor=tokenizer, model=torch.nn.Linear(1, 1))
    name = next(iter(PROBES))
    text = read_held_out(run, None, {name: PROBES[name]}, print)
    rows, length = text.tokens.shape
    size = rows // 2 * length
    assert text.tokens[: rows // 2].flatten().tolist() == part[:size].tolist()
    assert text.reported.flatten().tolist() == part[-size:].tolist()
    assert len(text.labels) == rows
