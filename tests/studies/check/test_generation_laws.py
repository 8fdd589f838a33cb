"""The laws of generation name the smallest case in which beam search and greedy decoding part."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from foveal import layers
from foveal.generation.beam_search import beam_search
from foveal.laws.decoder_laws import DecoderTrial
from foveal.studies.check.generation_laws import laws_of_generation
from foveal.studies.check.law import REFERENCE, LawResult, check_law

Tokens = tuple[int, ...]
BEAM_SEARCH = "foveal.studies.check.generation_laws.beam_search"


def beam_of_one() -> LawResult:
    """Check the law on a small model."""
    torch.manual_seed(0)
    stack = layers.Stack([layers.Block(layers.SelfAttention(8, 2))])
    head = layers.DecoderLM(layers.Embedding(11, 8), stack, 8).double().eval()
    law, _ = laws_of_generation({REFERENCE: DecoderTrial(head, head, lambda: None, 1e-9)})
    return check_law("model", replace(law, paths=(REFERENCE,)))


def test_beam_search_of_ours_is_greedy() -> None:
    assert beam_of_one().verdict == "holds"


@pytest.mark.parametrize(
    ("change", "case"),
    [
        (lambda tokens: tokens[:-1], "length 1, row 0, token 0"),
        (lambda tokens: (*tokens, 3), "length 1, row 0, token 1"),
        (lambda tokens: tokens[:2], "length 3, row 0, token 2"),
        (
            lambda tokens: (*tokens[:1], *((token + 1) % 11 for token in tokens[1:])),
            "length 2, row 0, token 1",
        ),
    ],
)
def test_the_smallest_case_is_named(
    change: Callable[[Tokens], Tokens], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(*arguments: Any, **named: Any) -> Any:
        return [
            [replace(each, tokens=change(each.tokens)) for each in kept]
            for kept in beam_search(*arguments, **named)
        ]

    monkeypatch.setattr(BEAM_SEARCH, changed)
    result = beam_of_one()
    assert result.problem == "a beam of 1 chooses another token than greedy decoding"
    assert result.case == case


def test_a_beam_without_a_hypothesis_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BEAM_SEARCH, lambda head, prompts, *_, **__: [[] for _ in prompts])
    assert beam_of_one().problem == "beam search finds no hypothesis for prompt 0"
