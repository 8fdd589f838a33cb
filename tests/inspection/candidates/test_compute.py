"""The probabilities at each step are those of reading the whole text again, with any kind of state."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from foveal.data.text.tokenizers import CharacterTokenizer
from foveal.generation.beam_search import BeamPath, beam_search
from foveal.generation.sampling import GREEDY, Sampling
from foveal.inspection.candidates.compute import path_score, sampled_text, searched_text, written_token
from foveal.inspection.text_writer import TextWriter, token_label
from tests.support.decoder_heads import HEADS, ScriptedHead, V, next_log_probabilities

PROMPT = (1, 2, 3)
TOKENIZER = CharacterTokenizer("abcdefg")

head_of_any_kind = pytest.mark.parametrize("make", HEADS.values(), ids=HEADS.keys())


def writer_of(head: Any, limit: int = 6, end: int | None = None) -> TextWriter:
    ends = frozenset[int]() if end is None else frozenset({end})
    return TextWriter(head, PROMPT, limit, TOKENIZER, end_tokens=ends, noise_key="bcd")


@head_of_any_kind
def test_probabilities_are_those_of_the_whole_text_read_again(make: Callable[[], Any]) -> None:
    head = make()
    for text in (
        sampled_text(writer_of(head), Sampling(1.5, seed=3), 4),
        sampled_text(writer_of(head), GREEDY, 4),
        searched_text(writer_of(head), 3, 0.6, 4),
    ):
        tokens = [*PROMPT]
        for one in text.tokens:
            exact = next_log_probabilities(head, tokens)
            ordered, ids = exact.sort(descending=True)
            assert [each.token for each in one.candidates] == ids[:4].tolist()
            assert [each.log_probability for each in one.candidates] == pytest.approx(
                ordered[:4].tolist(), abs=1e-12
            )
            assert one.log_probability == pytest.approx(float(exact[one.token]), abs=1e-12)
            assert one.entropy == pytest.approx(-float((exact.exp() * exact).sum()), abs=1e-12)
            assert ids[one.rank - 1] == one.token
            if one.sampled_from is not None:
                scaled = (exact / 1.5).softmax(0)
                assert one.sampled_from == pytest.approx(float(scaled[one.token]), abs=1e-12)
            tokens.append(one.token)
    assert all(one.rank == 1 for one in sampled_text(writer_of(head), GREEDY, 1).tokens)


@pytest.mark.parametrize("end", [None, 2])
def test_the_searched_text_is_that_of_the_search(end: int | None) -> None:
    head = HEADS["gru"]()
    writer = writer_of(head, end=end)
    text = searched_text(writer, 4, 1.0, 3)
    (best,) = beam_search(head, [PROMPT], 6, beam=4, alpha=1.0, end_tokens=writer.end_tokens)[0]
    assert tuple(one.token for one in text.tokens) == best.tokens
    assert text.log_probability == pytest.approx(best.log_probability, abs=1e-12)
    assert text.finish_reason == best.finish_reason


def test_a_uniform_step_and_a_certain_one() -> None:
    even = written_token(torch.zeros(V), 3, 2)
    assert even.entropy == pytest.approx(math.log(V))
    assert [each.token for each in even.candidates] == [0, 1], "ties go to the lower number"
    assert even.rank == 4
    certain = written_token(torch.tensor([0.0, -math.inf, -math.inf]), 0, 1)
    assert (certain.log_probability, certain.rank, certain.entropy) == (0.0, 1, 0.0)


def test_one_token_and_an_end() -> None:
    text = sampled_text(writer_of(ScriptedHead.saying([0, 0, 4, 2, 1], V), end=2), GREEDY, 1)
    assert ([one.token for one in text.tokens], text.finish_reason) == ([4, 2], "end")
    assert len(sampled_text(writer_of(HEADS["rnn"](), limit=1), GREEDY, 1).tokens) == 1


def test_white_space_is_a_sign() -> None:
    assert [token_label(name) for name in ("a ", " ", "\n", " in", "")] == ["a", "␣", "⏎", "␣in", ""]
    assert [token_label(name) for name in ("\r", "\x0b", "\xa0b")] == ["␍", r"\x0b", r"\xa0b"]


def test_the_score_of_a_path_is_its_log_probability_over_the_length_penalty() -> None:
    assert path_score(BeamPath(length=7, log_probability=-6.0), 1.0) == pytest.approx(-3.0)
