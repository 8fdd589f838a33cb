"""Tokenizers there and here give the same tokens; those that are not ours are refused."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Fast

from foveal.core.errors import UserError
from foveal.data.text.tokenizers import (
    BPETokenizer,
    ByteTokenizer,
    CharacterTokenizer,
    Tokenizer,
    load_tokenizer,
)
from foveal.interop.huggingface.files import read_json, read_weights
from foveal.interop.huggingface.tokenizer import read_tokenizer, tokenizer_files

LINES = ["the cat  sat on the mat; the rat,\n\nthe hat's 123 — naïve 日本語 🙂 e\u0301\t\r\n"] * 9
TEXT = "".join(LINES)
TOKENIZERS = {
    "character": CharacterTokenizer(TEXT + "\x00\u2028\ud7ff\U0010ffff"),
    "byte": ByteTokenizer(),
    "bpe": BPETokenizer.train(LINES, 300),
}


def gpt2s(**more: Any) -> Fast:
    """Byte-level BPE made as GPT-2's was, with its token for the end of a text."""
    fast = Fast(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, **more)
    fast.decoder = decoders.ByteLevel()
    fast.post_processor = processors.ByteLevel(trim_offsets=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>"]
    fast.train_from_iterator(
        LINES,
        trainers.BpeTrainer(
            vocab_size=300, initial_alphabet=alphabet, special_tokens=special, show_progress=False
        ),
    )
    return fast


def neoxs() -> Fast:
    """As GPT-NeoX's, which Mamba and RWKV come with: composed characters, and tokens of several blanks."""
    fast = gpt2s()
    fast.normalizer = normalizers.NFC()
    fast.post_processor = processors.TemplateProcessing(single="$A", special_tokens=[])
    fast.add_tokens([AddedToken(" " * n, normalized=True) for n in (4, 3, 2)])
    return fast


def saved(fast: Fast, folder: Path) -> Path:
    fast.save(str(folder / "tokenizer.json"))
    return folder


def test_a_tokenizer_as_gpt2s(tmp_path: Path) -> None:
    fast = gpt2s()
    fast.enable_truncation(3)
    fast.enable_padding(length=9)
    ours = read_tokenizer(saved(fast, tmp_path), fast.get_vocab_size())
    fast.no_truncation()
    fast.no_padding()
    text = f"the cat<|endoftext|>{TEXT} é😀"
    ids = ours.encode(text)
    assert ids.tolist() == fast.encode(text).ids
    assert fast.token_to_id("<|endoftext|>") in ids
    assert ours.decode(ids) == text
    assert ours.characters[ids].sum() == len(text)


def test_a_tokenizer_as_neoxs(tmp_path: Path) -> None:
    fast = neoxs()
    ours = read_tokenizer(saved(fast, tmp_path), fast.get_vocab_size())
    text = "the    cat  sat\n   on"
    assert ours.encode(text).tolist() == fast.encode(text).ids
    token = fast.token_to_id("    ")
    assert token is not None
    assert ours.pieces[token] == b"    "
    assert ours.decode(ours.encode(text)) == text
    assert ours.decode(ours.encode("e\u0301")) == "é"


def test_a_model_with_more_tokens_than_its_tokenizer(tmp_path: Path) -> None:
    fast = gpt2s()
    size = fast.get_vocab_size()
    ours = read_tokenizer(saved(fast, tmp_path), size + 3)
    assert ours.size == size + 3
    assert ours.decode([size, size + 2]) == f"<unused {size}><unused {size + 2}>"
    assert ours.encode(TEXT).tolist() == fast.encode(TEXT).ids
    with pytest.raises(UserError, match=rf"{size} tokens, but the model has {size - 1}"):
        read_tokenizer(tmp_path, size - 1)


@pytest.mark.parametrize("kind", list(TOKENIZERS))
def test_ours_there_and_back(kind: str, tmp_path: Path) -> None:
    ours = TOKENIZERS[kind]
    for name, content in tokenizer_files(ours).items():
        (tmp_path / name).write_bytes(content)
    back = read_tokenizer(tmp_path, ours.size)
    assert back.pieces == ours.pieces
    assert np.array_equal(back.encode(TEXT), ours.encode(TEXT))
    assert (type(back) is type(ours)) == (kind != "byte"), "bytes come back as byte-level BPE without merges"


@pytest.mark.parametrize("kind", list(TOKENIZERS))
@given(data=st.data())
def test_the_library_gives_our_tokens(kind: str, data: st.DataObject) -> None:
    """Characters of every sort, among them line ends, marks and those beyond U+FFFF."""
    ours = TOKENIZERS[kind]
    letters = ours.vocabulary if isinstance(ours, CharacterTokenizer) else None
    text = data.draw(st.text(letters or st.characters(exclude_categories=["Cs"]), max_size=50))
    theirs = Fast.from_str(tokenizer_files(ours)["tokenizer.json"].decode())
    ids = ours.encode(text)
    assert theirs.encode(text).ids == ids.tolist()
    assert theirs.decode(ids.tolist()) == text


@pytest.mark.parametrize("kind", list(TOKENIZERS))
def test_transformers_opens_ours(kind: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    ours: Tokenizer = TOKENIZERS[kind]
    for name, content in tokenizer_files(ours).items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ids = ours.encode(TEXT).tolist()
    assert theirs(TEXT)["input_ids"] == ids
    assert theirs.decode(ids) == TEXT


def word_level() -> Fast:
    fast = Fast(models.WordLevel({"the": 0, "cat": 1}, unk_token="<unk>"))
    fast.pre_tokenizer = pre_tokenizers.Whitespace()
    return fast


def changed(**parts: Any) -> dict[str, Any]:
    return json.loads(gpt2s().to_str()) | parts


def template() -> Any:
    return processors.TemplateProcessing(single="$A <|endoftext|>", special_tokens=[("<|endoftext|>", 0)])


def with_parts(**parts: Any) -> dict[str, Any]:
    fast = gpt2s()
    for name, part in parts.items():
        setattr(fast, name, part)
    return json.loads(fast.to_str())


OTHERS = {
    "words": (
        lambda: json.loads(word_level().to_str()),
        "a tokenizer of words; Foveal can import only byte-level BPE",
    ),
    "unigram": (
        lambda: changed(model={"type": "Unigram", "vocab": []}),
        "its model differs from that of GPT-2's byte-level",
    ),
    "prefix": (
        lambda: with_parts(pre_tokenizer=pre_tokenizers.ByteLevel(add_prefix_space=True)),
        "its pre_tokenizer differs from that of",
    ),
    "no words": (
        lambda: json.loads(gpt2s(use_regex=False).to_str()),
        "its pre_tokenizer differs from that of",
    ),
    "no bytes": (lambda: changed(pre_tokenizer=None), "its pre_tokenizer differs from that of"),
    "several": (
        lambda: changed(pre_tokenizer={"type": "Sequence"}),
        "its pre_tokenizer differs from that of",
    ),
    "list": (lambda: changed(pre_tokenizer=[1]), "its pre_tokenizer differs from that of"),
    "ends": (lambda: with_parts(post_processor=template()), "its post_processor differs from that of"),
    "lower": (lambda: with_parts(normalizer=normalizers.Lowercase()), "its normalizer differs from that of"),
    "dropout": (lambda: changed(model={"type": "BPE", "dropout": 0.1}), "its model differs from that of"),
    "no model": (lambda: changed(model=None), "not a tokenizer: it has no model"),
    "no merges": (lambda: changed(model={"type": "BPE"}), "not a usable tokenizer"),
    "gap": (
        lambda: changed(model={"type": "BPE", "vocab": {"a": 0, "b": 7}, "merges": []}, added_tokens=[]),
        "not a usable tokenizer",
    ),
    "no letters": (
        lambda: changed(model={"type": "BPE", "vocab": {"\u4e00": 0}, "merges": []}, added_tokens=[]),
        "not a usable tokenizer",
    ),
}


PANICKING_MODEL = {
    "type": "BPE",
    "vocab": {"a": 0, "b": 1, "ab": 2},
    "merges": [["a", "b"]],
    "continuing_subword_prefix": "####",
}
"""The library cuts the prefix off `b`, which is shorter, and panics."""


def test_a_file_that_makes_the_library_panic(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A panic is no `Exception`, and prints a traceback of its own."""
    (tmp_path / "tokenizer.json").write_text(json.dumps(changed(model=PANICKING_MODEL, added_tokens=[])))
    with pytest.raises(
        UserError, match=r"tokenizer\.json: not a usable tokenizer \(the library that reads it"
    ):
        read_tokenizer(tmp_path, 300)
    with pytest.raises(
        UserError, match=r"tokenizer\.json: not a tokenizer's file \(the library that reads it"
    ):
        load_tokenizer(tmp_path)
    assert capfd.readouterr().err == ""


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    for name in ("tokenizer.json", "config.json", "model.safetensors"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(UserError, match=r"tokenizer\.json: can't read: not a regular file"):
        read_tokenizer(tmp_path, 300)
    with pytest.raises(UserError, match=r"config\.json: can't read: not a regular file"):
        read_json(tmp_path / "config.json")
    with pytest.raises(UserError, match=r"model\.safetensors"):
        read_weights(tmp_path)


@pytest.mark.parametrize("name", list(OTHERS))
def test_tokenizers_that_are_not_ours(name: str, tmp_path: Path) -> None:
    make, message = OTHERS[name]
    (tmp_path / "tokenizer.json").write_text(json.dumps(make()))
    with pytest.raises(UserError) as told:
        read_tokenizer(tmp_path, 300)
    assert f"tokenizer.json: {message}" in str(told.value)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"\xff", b'{"model": {"type": "WordLevel", "vocab": {"": 0}}}']
)
def test_files_that_are_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(UserError, match=r"tokenizer\.json: "):
        read_tokenizer(tmp_path, 300)
    with pytest.raises(UserError, match="can't read: No such file"):
        read_tokenizer(tmp_path / "nothing", 300)
