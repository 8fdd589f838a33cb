"""Text as it streams: what is shown never changes, and stops where it should."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foveal.core.errors import UserError
from foveal.data.text.tokenizers import ByteTokenizer, CharacterTokenizer, StreamingDecoder
from foveal.generation.sampling import GREEDY, Sampling
from foveal.generation.text_stream import (
    GeneratedText,
    StopStringFilter,
    TextChunk,
    beam_text,
    collect_texts,
    generate_text,
)
from tests.support.decoder_heads import RecordingHead, ScriptedHead, SmallRecurrence


class Pieces:
    """A tokenizer of given strings; it encodes by single characters."""

    def __init__(self, *pieces: str):
        self.pieces = pieces

    def encode(self, text: str) -> np.ndarray:
        return np.array([self.pieces.index(character) for character in text])

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(self.pieces[token] for token in tokens)

    def decoder(self) -> StreamingDecoder:
        return StreamingDecoder([piece.encode() for piece in self.pieces])


def saying(tokens: Sequence[int], tokenizer: Pieces, **how: Any) -> list[TextChunk]:
    """The pieces of a text that is `tokens`."""
    head = ScriptedHead.saying(tokens, len(tokenizer.pieces))
    settings: dict[str, Any] = {"max_new_tokens": len(tokens), "sampling": GREEDY} | how
    return list(generate_text(head, tokenizer, [tokenizer.pieces[0]], **settings))


def whole_text(pieces: list[TextChunk]) -> GeneratedText:
    """Return what the last piece says of the whole text."""
    assert pieces[-1].finished is not None
    return pieces[-1].finished


def first_ending(text: str, stops: Sequence[str]) -> str:
    """`text` cut before the stop string that ends first; of those that end together, the longest."""
    for end in range(len(text) + 1):
        starts = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if starts:
            return text[: min(starts)]
    return text


@given(
    st.lists(st.text("ab", max_size=4), max_size=8),
    st.lists(st.text("ab", min_size=1, max_size=4), max_size=3),
)
def test_the_cut_does_not_depend_on_the_tokens(parts: list[str], stops: list[str]) -> None:
    scissors, shown, stopped = StopStringFilter(stops), "", False
    text = "".join(parts)
    wanted = first_ending(text, stops)
    read = ""
    for part in parts:
        read += part
        fresh, stopped = scissors.push(part)
        shown += fresh
        assert wanted.startswith(shown), "shown text is never taken back"
        if stopped:
            break
        assert read == shown + scissors.pending
        assert all(any(stop.startswith(scissors.pending) for stop in stops) for _ in scissors.pending)
    assert stopped == (wanted != text or any(stop in text for stop in stops))
    assert shown + ("" if stopped else scissors.pending) == wanted


def test_a_stop_string_across_tokens() -> None:
    tokenizer = Pieces("x", "ab", "c\n", "\nUs", "er", "zz")
    pieces = saying([1, 2, 3, 4, 5, 5], tokenizer, stops=["\n\nUser"])
    assert [piece.text for piece in pieces] == ["ab", "c", ""]
    assert pieces[-1].finished == GeneratedText(
        "abc", (1, 2, 3, 4), whole_text(pieces).log_probability, "stop"
    )


def test_what_is_held_back_comes_at_the_end() -> None:
    tokenizer = Pieces("x", "ab", "c\n", "end")
    pieces = saying([1, 2, 2], tokenizer, stops=["\n\n"])
    assert [piece.text for piece in pieces] == ["ab", "c", "\nc\n"]
    assert whole_text(pieces).text == "abc\nc\n"
    assert whole_text(pieces).finish_reason == "limit"
    pieces = saying([1, 2, 3, 1], tokenizer, stops=["\n\n"], end_tokens={3})
    assert whole_text(pieces).text == "abc\n"
    assert whole_text(pieces).tokens == (1, 2, 3)
    assert whole_text(pieces).finish_reason == "end"


def test_a_stop_string_at_the_limit_is_a_stop() -> None:
    whole = saying([1, 1], Pieces("x", "a"), stops=["aa"])[-1].finished
    assert whole is not None
    assert (whole.text, whole.finish_reason) == ("", "stop")


def test_characters_come_whole() -> None:
    text = "aé€😀"
    head = ScriptedHead.saying(list(text.encode()), 256)
    pieces = list(generate_text(head, ByteTokenizer(), ["x"], len(text.encode()), GREEDY))
    assert [piece.text for piece in pieces] == list(text)
    cut = list(generate_text(head, ByteTokenizer(), ["x"], 8, GREEDY))
    assert [piece.text for piece in cut] == ["a", "é", "€", "\ufffd"]
    (whole,) = collect_texts(cut)
    assert (whole.text, len(whole.tokens)) == ("aé€\ufffd", 8)


def test_a_broken_character_can_complete_a_stop_string() -> None:
    head = ScriptedHead.saying([0x61, 0xE2, 0x82], 256)
    (whole,) = collect_texts(generate_text(head, ByteTokenizer(), ["x"], 3, GREEDY, stops=["\ufffd"]))
    assert (whole.text, whole.finish_reason) == ("a", "stop")


def test_pieces_joined_are_the_text() -> None:
    head, tokenizer = SmallRecurrence(), CharacterTokenizer("\nabcdef")
    prompts = ["abc", "f", "", "dddd"]
    pieces = list(
        generate_text(
            head, tokenizer, prompts, 40, Sampling(), samples=2, stops=["ab", "\nc"], end_tokens={6}
        )
    )
    wholes = collect_texts(pieces)
    assert len(wholes) == 8
    assert {whole.finish_reason for whole in wholes} == {"stop", "end"}
    for row, whole in enumerate(wholes):
        assert "".join(piece.text for piece in pieces if piece.row == row) == whole.text
        said = tokenizer.decode([token for token in whole.tokens if token != 6])
        assert first_ending(said, ["ab", "\nc"]) == whole.text
        assert [piece.finished is None for piece in pieces if piece.row == row][-1] is False
    alone = collect_texts(
        generate_text(
            head, tokenizer, prompts[3:], 40, Sampling(), samples=2, stops=["ab", "\nc"], end_tokens={6}
        )
    )
    assert [one.tokens for one in alone] == [one.tokens for one in wholes[6:]]
    assert [one.log_probability for one in alone] == pytest.approx(
        [one.log_probability for one in wholes[6:]]
    )


def test_log_probability_is_the_models_own() -> None:
    """Not that of the distribution after temperature and truncation."""
    head = ScriptedHead(torch.tensor([[0.7, 0.2, 0.1]]).log())
    (whole,) = collect_texts(
        generate_text(head, Pieces("x", "y", "z"), ["x"], 4, Sampling(temperature=0.1, top_k=1))
    )
    assert whole.log_probability == pytest.approx(4 * torch.tensor(0.7).log().item())


@pytest.mark.parametrize(
    ("tokenizer", "start"),
    [(CharacterTokenizer("ab\n"), 0), (CharacterTokenizer("ab"), 0), (ByteTokenizer(), 10)],
)
def test_an_empty_prompt_starts_from_a_newline_or_token_0(
    tokenizer: CharacterTokenizer | ByteTokenizer, start: int
) -> None:
    seen = []
    head = RecordingHead(ScriptedHead(torch.eye(256)[:1]))
    head.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].tolist()))
    list(generate_text(head, tokenizer, [""], 1, GREEDY))
    assert seen == [[[start]]]


def test_an_empty_stop_string() -> None:
    with pytest.raises(UserError, match="stop string is empty"):
        saying([1], Pieces("x", "a"), stops=["b", ""])


def test_beam_text() -> None:
    tokenizer = Pieces("x", "y", "z", "!")
    head = SmallRecurrence(4)
    (found,) = beam_text(head, tokenizer, ["xyz"], 5, beam=4, best=4, alpha=0.6, end_tokens={3})
    for generation in found:
        assert generation.text == tokenizer.decode(generation.tokens).removesuffix("!")
        assert generation.finish_reason == ("end" if generation.tokens[-1] == 3 else "limit")
    (greedy,) = collect_texts(generate_text(head, tokenizer, ["xyz"], 5, GREEDY, end_tokens={3}))
    ((one,),) = beam_text(head, tokenizer, ["xyz"], 5, beam=1, alpha=0.6, end_tokens={3})
    assert (one.text, one.tokens, one.finish_reason) == (greedy.text, greedy.tokens, greedy.finish_reason)
