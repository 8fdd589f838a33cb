"""Tokenizers give back every text, count its characters exactly, and survive being saved."""

import json
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveal.config.data import TokenizerName
from foveal.core.errors import UserError
from foveal.data.text import subword_tokenizers as module
from foveal.data.text.tokenizers import (
    BPETokenizer,
    ByteTokenizer,
    CharacterTokenizer,
    Tokenizer,
    load_tokenizer,
    make_tokenizer,
)

TRAINING = [
    "the cat sat on the mat; the rat, the hat — and that was that.\n\n" * 20,
    "naïve café\n  日本語 🙂\n" * 9,
]
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
GAPS = [
    "the",
    "cat ",
    " sat",
    "    on",
    "\n\n",
    "the\n    cat",
    " \n",
    "\t\tsat",
    "\x1c",
    "\u2003",
    "'s 9 ",
    "é",
]
BPE_OF_GAPS = BPETokenizer.train([" ".join(GAPS), "".join(GAPS)] * 30, 320)
CLAUSE = st.lists(st.sampled_from(GAPS), max_size=3).map(lambda gaps: "".join(gaps) + " the cat")


@cache
def made(kind: TokenizerName) -> Tokenizer:
    return make_tokenizer(kind, 300, iter(TRAINING))


@pytest.mark.parametrize("kind", ["byte", "bpe"])
@given(text=ANY_TEXT)
def test_any_text_comes_back(kind: str, text: str) -> None:
    tokenizer = made(kind)
    ids = tokenizer.encode(text)
    assert ids.dtype == np.int64
    assert tokenizer.decode(ids) == text
    assert tokenizer.characters[ids].sum() == len(text)


@given(text=st.text(st.sampled_from("".join(TRAINING))))
def test_characters_of_the_training_text_come_back(text: str) -> None:
    ids = made("character").encode(text)
    assert len(ids) == len(text)
    assert made("character").decode(ids) == text


@pytest.mark.parametrize("kind", ["character", "byte", "bpe"])
def test_token_by_token_equals_the_whole_and_shows_no_half_character(kind: str) -> None:
    text = "".join(TRAINING)
    decoder = made(kind).decoder()
    shown = [decoder.push(int(i)) for i in made(kind).encode(text)]
    assert "".join(shown) == text
    assert "\ufffd" not in "".join(shown)
    assert decoder.flush() == ""


def test_an_unfinished_character_is_shown_only_at_the_end() -> None:
    decoder = ByteTokenizer().decoder()
    assert [decoder.push(byte) for byte in "é🙂".encode()[:5]] == ["", "é", "", "", ""]
    assert decoder.flush() == "\ufffd"


def test_character_vocabulary_is_sorted_and_of_the_training_text_alone() -> None:
    tokenizer = make_tokenizer("character", 0, iter(["banana", "nab c"]))
    assert isinstance(tokenizer, CharacterTokenizer)
    assert tokenizer.vocabulary == " abcn"
    assert tokenizer.encode("cab").tolist() == [3, 1, 2]


def test_a_prompt_with_characters_never_seen_is_refused_by_their_names() -> None:
    with pytest.raises(UserError, match=r"no '\?', 'é'"):
        made_of_abc().encode("aé?b")


def test_held_out_text_leaves_unknown_characters_out_and_counts_them() -> None:
    ids, unknown = made_of_abc().encode_known("aébéc\udc80")
    assert ids.tolist() == [0, 1, 2]
    assert unknown == Counter({"é": 2, "\udc80": 1})


@pytest.mark.parametrize("kind", ["byte", "bpe"])
def test_half_a_surrogate_pair_is_refused(kind: str) -> None:
    with pytest.raises(UserError, match="surrogate"):
        made(kind).encode("a\udc80")


def test_bpe_merges_and_has_the_size_asked_for() -> None:
    tokenizer = made("bpe")
    assert tokenizer.size == 300
    assert len(tokenizer.encode("the cat sat on the mat")) < 16
    assert set(tokenizer.pieces) >= {bytes([byte]) for byte in range(256)}


def test_bpe_is_the_same_every_time() -> None:
    assert BPETokenizer.train(TRAINING, 300).digest == made("bpe").digest


@given(text=st.lists(CLAUSE, max_size=60).map("".join))
def test_bpe_in_parts_equals_bpe_of_the_whole(text: str) -> None:
    tokenizer = BPE_OF_GAPS
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK_CHARACTERS", 10**6)
        whole = tokenizer.encode(text)
        patch.setattr(module, "CHUNK_CHARACTERS", 40)  # longer than any clause
        chunks = [*module._chunks(text)]
        assert "".join(chunks) == text
        assert max(map(len, chunks), default=0) <= 80
        assert tokenizer.encode(text).tolist() == whole.tolist()


def test_bpe_bears_a_line_without_spaces() -> None:
    text = "ab" * 200_000
    tokenizer = BPETokenizer.train([text], 300)
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("kind", ["character", "byte", "bpe"])
def test_saved_and_loaded_it_is_the_same(kind: str, tmp_path: Path) -> None:
    made(kind).save(tmp_path)
    loaded = load_tokenizer(tmp_path)
    assert type(loaded) is type(made(kind))
    assert loaded.pieces == made(kind).pieces
    assert loaded.digest == made(kind).digest
    text = "the naïve cat"
    assert loaded.encode(text).tolist() == made(kind).encode(text).tolist()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b"[]", b"{}", b'{"kind": "character"}', b'{"kind": "word"}', b'{"kind": "bpe"}'],
)
def test_a_foreign_file_is_refused_by_name(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(UserError, match=r"tokenizer\.json: not a tokenizer's file"):
        load_tokenizer(tmp_path)


def test_a_tokenizer_that_is_not_byte_level_is_refused(tmp_path: Path) -> None:
    content = json.loads(made("bpe").to_json())
    content["model"]["vocab"] = {"日": 0}
    content["model"]["merges"] = []
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(UserError, match="not a tokenizer's file"):
        load_tokenizer(tmp_path)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"tokenizer\.json: can't read"):
        load_tokenizer(tmp_path)


def made_of_abc() -> CharacterTokenizer:
    return CharacterTokenizer("abc")
