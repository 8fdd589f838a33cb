"""Sources that are too long for a model are skipped in prediction, and all others get a prediction."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.files.data_part import open_part
from foveal.data.pairs.pair import PairProcessor
from foveal.tasks.tagging import TagsDataConfig
from tests.support.pair_formats import SPEECH, TAGGED_WORDS, TEXT_PAIRS

WORDS = [f"a b {'c ' * (number % 3)}d" for number in range(12)]
RATE = 8000


def lines(path: Path, max_length: int) -> str:
    path.write_text(f"a b\n{'a ' * max_length}\nc d\n")
    return str(path)


def sounds(path: Path, max_length: int) -> str:
    """The second is a second longer than may be."""
    path.mkdir()
    for number, seconds in enumerate((0.5, max_length + 1, 0.4)):
        wave = np.sin(np.arange(int(seconds * RATE)) * 0.2)
        soundfile.write(path / f"{number}.wav", wave, RATE)
    return str(path)


def a_table(folder: Path) -> str:
    path = folder / "pairs.tsv"
    path.write_text("source\ttarget\n" + "".join(f"{text}\t{text[::-1]}\n" for text in WORDS))
    return str(path)


def sentences(folder: Path) -> str:
    path = folder / "tags.conllu"
    rows = [
        "".join(f"{n}\t{word}\t_\t{'XY'[n % 2]}" + 6 * "\t_" + "\n" for n, word in enumerate(text.split(), 1))
        for text in WORDS
    ]
    path.write_text("\n".join([*rows, ""]))
    return str(path)


def spoken(folder: Path) -> str:
    path = folder / "spoken"
    sounds(path, 0)
    (path / "metadata.csv").write_text("file_name,text\n" + "".join(f"{n}.wav,a b\n" for n in range(3)))
    return str(path)


CASES: dict[str, tuple[Any, Callable[[Path], str], Callable[[Path, int], str], str]] = {
    "pairs": (TEXT_PAIRS, a_table, lines, "asked, line 2: .* tokens, and the model reads at most 9: cut it"),
    "tagged": (
        TAGGED_WORDS,
        sentences,
        lines,
        "asked, line 2: .* tokens, and the model reads at most 9: cut it",
    ),
    "recordings": (SPEECH, spoken, sounds, r"asked/1\.wav: 10\.0 s long, more than 2 s; cut it"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_longer_source_is_skipped_where_it_is_asked_about(tmp_path: Path, case: str) -> None:
    data_format, training, asking, why = CASES[case]
    config = TagsDataConfig(tokenizer="character", max_length=9, max_seconds=2, sample_rate=RATE, mel_bins=20)
    rows = [
        *data_format.read(open_part(training(tmp_path)), config.model_copy(update={"max_length": 99}), [])
    ]
    processor, told = data_format.make_processor("data", rows, config), list[str]()
    asked, examples, skipped = prepare_examples.read_unlabeled(
        data_format, asking(tmp_path / "asked", 9), processor, config, told.append
    )
    assert (len(asked), len(examples), len(skipped)) == (2, 2, 1)
    (line,) = told
    assert line.startswith(f"skipped: {tmp_path}/asked")
    assert re.search(why, line), line


@pytest.mark.parametrize("name", ["nothing", "empty", "talk.m4a"])
def test_where_there_are_no_recordings_that_is_said(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "talk.m4a").write_bytes(b"m4a")
    why = "no such file or folder" if name == "nothing" else r"no recordings in it \(\.wav, .*\)"
    with pytest.raises(UserError, match=f"{name}: {why}"):
        prepare_examples.read_unlabeled(
            SPEECH, str(tmp_path / name), PairProcessor(None, None), DataConfig(), print
        )


def test_where_all_are_too_long_the_first_is_named(tmp_path: Path) -> None:
    config = DataConfig(tokenizer="character", max_length=9)
    processor = TEXT_PAIRS.make_processor(
        "data", [*TEXT_PAIRS.read(open_part(a_table(tmp_path)), config, [])], config
    )
    asked = tmp_path / "asked"
    asked.write_text(f"{'a' * 20}\n{'b' * 20}\n")
    with pytest.raises(UserError, match=r"no readable source: .*line 1: 21 tokens, .* cut it"):
        prepare_examples.read_unlabeled(TEXT_PAIRS, str(asked), processor, config, print)
