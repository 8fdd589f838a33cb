"""What held-out texts have that the training text has not: where a text is written it is counted and said."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from foveal.config import DataConfig, ImageConfig
from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.prepare_corpus import prepare_corpus, prepare_eval_corpus
from foveal.data.text.tokenizers import ByteTokenizer, CharacterTokenizer, WordTokenizer
from foveal.data.text.unknown_tokens import check_known_sources
from foveal.data.text.word_vocabulary import WordVocabulary
from foveal.tasks.vqa.data_settings import VQADataConfig
from tests.support.pair_formats import CLIP_TEXT, IMAGE_TEXT, TEXT_PAIRS, WRITTEN_ANSWERS

KNOWN, STRANGE = ("red fox", "blue sky", "red sky"), ("réd fox red", "blue öx", "réd yak blue sky")
LEFT_OUT = {
    "character": ("characters", {"é": 2, "ö": 1, "a": 1}),
    "word": ("words", {"réd": 2, "öx": 1, "yak": 1}),
}


def write_pictures(folder: Path, columns: list[str], texts: tuple[str, ...], first: int) -> None:
    """A table, whose last column has the texts."""
    folder.mkdir()
    with (folder / "metadata.csv").open("w", newline="") as table:
        out = csv.writer(table)
        out.writerow(columns)
        for number, text in enumerate(texts, first):
            Image.new("RGB", (8, 8), (9 * number, 60, 90)).save(folder / f"{number}.png")
            out.writerow([f"{number}.png", *["what"] * (len(columns) - 2), text])


def captions(folder: Path, texts: tuple[str, ...], first: int) -> None:
    write_pictures(folder, ["file_name", "text"], texts, first)


def questions(folder: Path, texts: tuple[str, ...], first: int) -> None:
    write_pictures(folder, ["file_name", "question", "answer"], texts, first)


def clips(folder: Path, texts: tuple[str, ...], first: int) -> None:
    films = np.full((len(texts), 3, 8, 8), 20, np.uint8)
    films += np.arange(first, first + len(texts), dtype=np.uint8)[:, None, None, None]
    with folder.open("wb") as out:
        np.savez(out, clips=films, text=np.array(texts))


def sentences(folder: Path, texts: tuple[str, ...], first: int) -> None:
    rows = "".join(f"sky {number}\t{text}\n" for number, text in enumerate(texts, first))
    folder.write_text(f"source\ttarget\n{rows}")


DATA_FORMATS: dict[str, tuple[Any, Callable[[Path, tuple[str, ...], int], None], str]] = {
    "captions": (IMAGE_TEXT, captions, ""),
    "clips": (CLIP_TEXT, clips, ".npz"),
    "replies": (WRITTEN_ANSWERS, questions, ""),
    "pairs": (TEXT_PAIRS, sentences, ".tsv"),
}


@pytest.mark.parametrize("tokenizer", LEFT_OUT)
@pytest.mark.parametrize("name", DATA_FORMATS)
def test_it_is_counted_and_said(name: str, tokenizer: Any, tmp_path: Path) -> None:
    data_format, write, suffix = DATA_FORMATS[name]
    known, strange = (tmp_path / f"{part}{suffix}" for part in ("known", "strange"))
    write(known, KNOWN, 1)
    write(strange, STRANGE, 11)
    config = VQADataConfig(
        image=ImageConfig(size=8), tokenizer=tokenizer, max_length=32, valid_fraction=0, test_fraction=0
    )
    said: list[str] = []
    found = prepare_examples.prepare_examples(
        data_format, str(known), None, str(strange), config, said.append
    )
    unit, each = LEFT_OUT[tokenizer]
    wanted = {"left_out": each, f"left_out_{unit}": 4}
    train, test = (found.facts["parts"][part] for part in ("train", "test"))
    assert wanted.items() <= test.items()
    assert train[f"left_out_{unit}"] == 0
    (line,) = said
    assert line.startswith(f"test: 4 {unit} that the training text does not have")
    assert line.endswith(", ".join(f"{one!r} ({n})" for one, n in each.items()))
    _, facts = prepare_examples.prepare_eval_examples(
        data_format, str(strange), config, found.processor, said.append
    )
    assert wanted.items() <= facts.items()
    assert said[1].startswith(f"{strange}: 4 {unit}")


def test_bytes_spell_any_text(tmp_path: Path) -> None:
    for name, texts in (("known.tsv", KNOWN), ("strange.tsv", STRANGE)):
        sentences(tmp_path / name, texts, 1 if texts is KNOWN else 11)
    config = DataConfig(tokenizer="byte", valid_fraction=0, test_fraction=0)
    said: list[str] = []
    given = (str(tmp_path / "known.tsv"), None, str(tmp_path / "strange.tsv"))
    found = prepare_examples.prepare_examples(TEXT_PAIRS, *given, config, said.append)
    assert not [key for key in found.facts["parts"]["test"] if "left_out" in key]
    assert said == []


UNREAD = ("при вет", "ми ру мир", "то же ещё")


@pytest.mark.parametrize("tokenizer", LEFT_OUT)
@pytest.mark.parametrize("name", DATA_FORMATS)
def test_texts_that_are_mostly_unknown_are_refused(name: str, tokenizer: Any, tmp_path: Path) -> None:
    """A score on the few characters that are known would say nothing."""
    data_format, write, suffix = DATA_FORMATS[name]
    known, strange = (tmp_path / f"{part}{suffix}" for part in ("known", "strange"))
    write(known, KNOWN, 1)
    write(strange, UNREAD, 11)
    sizes = {"max_length": 32, "valid_fraction": 0, "test_fraction": 0}
    config = VQADataConfig(image=ImageConfig(size=8), tokenizer=tokenizer, **sizes)
    message = rf"strange{suffix}: \d+ % of its {LEFT_OUT[tokenizer][0]} do not occur in the training text"
    with pytest.raises(UserError, match=message):
        prepare_examples.prepare_examples(data_format, str(known), str(strange), None, config, print)
    found = prepare_examples.prepare_examples(data_format, str(known), None, None, config, print)
    with pytest.raises(UserError, match=message):
        prepare_examples.prepare_eval_examples(data_format, str(strange), config, found.processor, print)


def test_sources_and_running_texts_that_are_mostly_unknown_are_refused(tmp_path: Path) -> None:
    words = WordVocabulary.fit(" ".join(KNOWN).split())
    for processor in (CharacterTokenizer("".join(KNOWN)), WordTokenizer(" ".join(KNOWN).split()), words):
        check_known_sources("data", processor, ["red sky", "мир"])
        with pytest.raises(UserError, match=r"data: \d+ % of its (characters|words) do not occur"):
            check_known_sources("data", processor, ["red", "мир", "ещё мир"])
    check_known_sources("data", ByteTokenizer(), UNREAD)
    (tmp_path / "known.txt").write_text(40 * "".join(f"{text}\n" for text in KNOWN))
    (tmp_path / "strange.txt").write_text(" ".join(UNREAD))
    known, strange = str(tmp_path / "known.txt"), str(tmp_path / "strange.txt")
    with pytest.raises(UserError, match=r"strange.txt: \d+ % of its characters"):
        prepare_corpus(known, DataConfig(), strange, None, print)
    with pytest.raises(UserError, match=r"strange.txt: \d+ % of its characters"):
        prepare_eval_corpus(strange, DataConfig(), CharacterTokenizer("".join(KNOWN)), print)
