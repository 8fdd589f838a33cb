"""From a path to token arrays: made once, found again, remade when anything changed, refused when bad."""

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data import prepare_corpus as module
from foveal.data.datasets import dataset_cache
from foveal.data.prepare_corpus import PreparedCorpus, prepare_corpus, prepare_eval_corpus
from foveal.data.text import token_store
from foveal.data.text.tokenizers import CharacterTokenizer, make_tokenizer
from foveal.store.sealed import seal_json

TEXT = "".join(f"line {i} of the text, which is about {i * i}\n" for i in range(400))
Said = list[str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text(TEXT)
    return tmp_path / "a.txt"


def prepared(data: Path | str, **config: Any) -> PreparedCorpus:
    return prepare_corpus(str(data), DataConfig(**config), None, None, print)


def text_of(found: PreparedCorpus, split: str) -> str:
    return found.processor.decode(getattr(found, split))


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the corpus was read for."""
    seen: list[str] = []
    init = token_store.CorpusReader.__init__

    def counted(self: Any, documents: Any, activity: str, log: Any) -> None:
        seen.append(activity)
        init(self, documents, activity, log)

    monkeypatch.setattr(token_store.CorpusReader, "__init__", counted)
    return seen


@pytest.mark.parametrize("kind", ["character", "byte", "bpe"])
def test_the_tokens_are_the_text_and_the_facts_are_right(kind: str, path: Path) -> None:
    found = prepared(path, tokenizer=kind, vocab_size=300)
    parts = [text_of(found, part) for part in ("train", "valid", "test")]
    assert "".join(parts) == TEXT
    assert isinstance(found.train, np.memmap)
    assert not found.train.flags.writeable
    assert json.loads(json.dumps(found.facts)) == found.facts
    for part, text in zip(("train", "valid", "test"), parts, strict=True):
        facts = found.facts["parts"][part]
        assert facts["documents"] == 1
        assert facts["characters"] == len(text)
        assert facts["tokens"] == len(getattr(found, part))
        assert facts["left_out"] == {}


def test_documents_are_joined_by_a_blank_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in ["one", "two", "three"]))
    found = prepared(path, valid_fraction=0, test_fraction=0)
    assert text_of(found, "train") == "one\n\ntwo\n\nthree"
    assert found.facts["parts"]["train"]["documents"] == 3
    assert found.facts["parts"]["train"]["characters"] == 15
    assert found.valid is None
    assert found.test is None


def test_nothing_is_cut_where_a_part_is_given(path: Path, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("line 9 of the text\n")
    only_valid = prepare_corpus(str(path), DataConfig(), str(tmp_path / "b.txt"), None, print)
    assert text_of(only_valid, "train") == TEXT
    assert text_of(only_valid, "valid") == "line 9 of the text\n"
    assert only_valid.test is None
    only_test = prepare_corpus(str(path), DataConfig(), None, str(tmp_path / "b.txt"), print)
    assert text_of(only_test, "train") == TEXT
    assert text_of(only_test, "test") == "line 9 of the text\n"
    assert only_test.valid is None


def test_what_is_unchanged_is_not_read_again(path: Path, readings: list[str], cache: Path) -> None:
    first = prepared(path)
    assert readings == ["reading", "tokenizing"]
    again = prepared(path)
    assert len(readings) == 2
    assert np.array_equal(first.train, again.train)
    assert again.facts == first.facts
    os.utime(path, ns=(1, 1))  # touched, the same content: read, not tokenised
    assert prepared(path).facts == first.facts
    assert readings[2:] == ["reading"]


def test_what_changed_is_made_anew(path: Path) -> None:
    first = prepared(path)
    path.write_text(TEXT.replace("text", "test"))
    os.utime(path, ns=(5, 5))
    second = prepared(path)
    assert "test" in text_of(second, "train")
    assert second.facts["parts"]["train"]["sha256"] != first.facts["parts"]["train"]["sha256"]


def test_other_settings_have_stores_of_their_own(path: Path) -> None:
    assert len(prepared(path).train) != len(prepared(path, valid_fraction=0.2).train)
    assert prepared(path, tokenizer="byte").processor.size == 256
    assert prepared(path, tokenizer="bpe", vocab_size=270).processor.size == 270
    assert prepared(path, tokenizer="bpe", vocab_size=280).processor.size == 280
    assert prepared(path).processor.size < 256


def stored(cache: Path, name: str) -> Path:
    (found,) = cache.glob(f"tokens/*/{name}")
    return found


@pytest.mark.parametrize("name", ["train.bin", "valid.bin", "tokenizer.json", "facts.json"])
@pytest.mark.parametrize("harm", ["flip", "truncate", "delete"])
def test_a_damaged_store_is_noticed_and_rebuilt(name: str, harm: str, path: Path, cache: Path) -> None:
    first = prepared(path)
    whole = [text_of(first, part) for part in ("train", "valid", "test")]
    facts, file = first.facts, stored(cache, name)
    content = file.read_bytes()
    if harm == "flip":
        file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    elif harm == "truncate":
        file.write_bytes(content[:-1])
    else:
        file.unlink()
    again = prepared(path)
    assert [text_of(again, part) for part in ("train", "valid", "test")] == whole
    assert again.facts == facts
    assert stored(cache, name).read_bytes() == content


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'"|u1"', b'"<u2"'),
        (b'"|u1"', b'"|u0"'),
        (b'"|u1"', b'"object"'),
        (b'"tokens": ', b'"tokens": 1'),
        (b'"characters": ', b'"characters": 1'),
    ],
)
def test_edited_facts_are_rebuilt(before: bytes, after: bytes, sealed: bool, path: Path, cache: Path) -> None:
    """Wrong widths made indices wrong, and edited counts figures, until the cache was deleted by hand."""
    first = prepared(path)
    file = stored(cache, "facts.json")
    content = file.read_bytes()
    assert before in content
    edited = content.replace(before, after)
    if sealed:
        facts = json.loads(edited)
        del facts["sha256"]
        edited = seal_json(facts)
    file.write_bytes(edited)
    again = prepared(path)
    if not (sealed and b"characters" in before):  # nothing but the text itself could show that
        assert again.facts == first.facts
        assert stored(cache, "facts.json").read_bytes() == content
    assert text_of(again, "train") == text_of(first, "train")


def test_a_damaged_note_is_no_harm(path: Path, cache: Path) -> None:
    first = prepared(path)
    for content in (b"", b"[]", b"{}", b"\xff", b"3"):
        for note in (cache / "seen").glob("*.json"):
            note.write_bytes(content)
        assert prepared(path).facts == first.facts


def test_an_interrupted_build_leaves_nothing(
    path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CharacterTokenizer, "encode_known", interrupt)
        with pytest.raises(KeyboardInterrupt):
            prepared(path)
    assert not [*cache.glob("tokens/[!.]*")]
    assert not [*cache.glob("tokens/*.part")]
    assert text_of(prepared(path), "train")


def test_a_text_that_changes_while_it_is_read_is_refused(
    path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meddle(*arguments: Any) -> Any:
        made = make_tokenizer(*arguments)
        path.write_text(TEXT.replace("about", "ABOUT"))
        return made

    monkeypatch.setattr(module, "make_tokenizer", meddle)
    with pytest.raises(UserError, match="changed while it was read"):
        prepared(path)
    assert not [*cache.glob("tokens/[!.]*")]


def test_characters_the_training_text_lacks_are_left_out_and_said(path: Path, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("line é9é日\n")
    said: Said = []
    found = prepare_corpus(str(path), DataConfig(), str(tmp_path / "b.txt"), None, said.append)
    assert text_of(found, "valid") == "line 9\n"
    facts = found.facts["parts"]["valid"]
    assert facts["left_out"] == {"é": 2, "日": 1}
    assert facts["left_out_characters"] == 3
    assert facts["characters"] == 10
    assert facts["tokens"] == 7
    assert any("valid: 3 characters" in line and "'é' (2)" in line for line in said)


def test_a_given_tokenizer_is_used(path: Path) -> None:
    tokenizer = CharacterTokenizer(set(TEXT) | {"Z"})
    found = prepare_corpus(str(path), DataConfig(), None, None, print, tokenizer)
    assert found.processor.digest == tokenizer.digest


def test_skipped_files_are_said_also_the_second_time(tmp_path: Path) -> None:
    for i in range(5):
        (tmp_path / f"{i}.txt").write_text(f"file {i}\n" * 50)
    (tmp_path / "image.png").write_bytes(b"\x89PNG\0\0")
    for _ in range(2):
        said: Said = []
        found = prepare_corpus(str(tmp_path), DataConfig(), None, None, said.append)
        assert "skipped 1 file(s)" in said[0]
        assert "image.png" in said[0]
        assert len(found.facts["skipped"]) == 1


def test_held_out_data_is_taken_whole(path: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("body\none é\ntwo\n")
    said: Said = []
    tokens, facts = prepare_eval_corpus(
        str(tmp_path / "rows.csv"), DataConfig(text="body"), CharacterTokenizer("enotw \n"), said.append
    )
    assert CharacterTokenizer("enotw \n").decode(tokens) == "one \n\ntwo"
    assert facts["tokens"] == 9
    assert facts["characters"] == 10
    assert facts["left_out"] == {"é": 1}
    assert any("rows.csv" in line for line in said)
    with pytest.raises(UserError, match="none of its characters"):
        prepare_eval_corpus(str(path), DataConfig(), CharacterTokenizer("日本"), print)


def test_a_catalogue_name_is_found_and_an_unknown_one_refused(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset_cache, "get_dataset", lambda name, log: path)
    monkeypatch.chdir(tmp_path)
    assert text_of(prepared("shakespeare", valid_fraction=0, test_fraction=0), "train") == TEXT
    (tmp_path / "shakespeare").write_text("a path comes first\n" * 20)
    assert text_of(prepared("shakespeare"), "train").startswith("a path")
    with pytest.raises(
        UserError, match=r"shakspeare: no such file.*did you mean 'shakespeare'.*foveal data list"
    ):
        prepared("shakspeare")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"a", "fewer than two different characters"),
        (b"a" * 5000, "fewer than two different characters"),
        (b"\xef\xbb\xbf", "fewer than two different characters"),
        (b"ab", "fewer than two different characters"),
        (b"\x89PNG\0\0", "binary"),
        ("caf\u00e9".encode() * 50 + b"\xc3", "cut off in the middle of a character at byte 250"),
        ("hello".encode("utf-16"), "UTF-16"),
    ],
)
def test_bad_files_are_one_plain_line_and_nothing_is_written(
    content: bytes, says: str, tmp_path: Path, cache: Path
) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(UserError) as caught:
        prepared(tmp_path / "a.txt")
    assert says in str(caught.value)
    assert str(tmp_path / "a.txt") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not [*cache.glob("tokens/[!.]*")]


def test_a_part_that_comes_out_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"text": "hello"}))
    with pytest.raises(UserError, match=r"too little text for a valid set.*data\.valid_fraction=0"):
        prepared(tmp_path / "rows.jsonl")


def test_a_cache_that_cannot_be_written_is_said(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(path))
    with pytest.raises(UserError, match="set FOVEAL_CACHE to another folder"):
        prepared(path)


@pytest.mark.parametrize("kind", ["character", "byte"])
def test_memory_stays_flat(kind: str, tmp_path: Path) -> None:
    big = tmp_path / "big.txt"
    with big.open("w") as file:
        for _ in range(3000):
            file.write(TEXT)
    assert big.stat().st_size > 40_000_000
    tracemalloc.start()
    found = prepared(big, tokenizer=kind)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.train) > 36_000_000
    assert peak < 40_000_000


def test_long_work_says_how_far_it_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_store, "PROGRESS_SECONDS", 0)
    said: Said = []
    prepare_corpus(str(path), DataConfig(), None, None, said.append)
    assert any(line.startswith("reading: ") for line in said)
    assert any(line.startswith("tokenizing: ") for line in said)
