"""A folder with tables for train, valid and test is a data set in parts, of which nothing is cut."""

from pathlib import Path

import pytest

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.open import open_path
from foveal.tasks.infer import infer_task
from tests.support.pair_formats import TEXT_PAIRS


def write(folder: Path, *names: str) -> Path:
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        rows = "".join(f"{name} {row}\t{number}\n" for row in range(40))
        (folder / name).write_text(f"source\ttarget\n{rows}")
    return folder


def examples(data: Path, valid: Path | None = None, test: Path | None = None) -> dict[str, list[str]]:
    """The first words of the sources in each part: the name of the file."""
    found = prepare_examples.prepare_examples(
        TEXT_PAIRS,
        str(data),
        None if valid is None else str(valid),
        None if test is None else str(test),
        DataConfig(tokenizer="word", valid_fraction=0.2, test_fraction=0.2),
        print,
    )
    every = {"train": found.train, "valid": found.valid, "test": found.test}
    return {
        part: sorted({text.split()[0] for text in one.sources})
        for part, one in every.items()
        if one is not None
    }


def test_each_part_is_read_whole_and_nothing_is_cut(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", "train.tsv", "valid.tsv", "test.tsv", "other.tsv")
    assert examples(folder) == {"train": ["train.tsv"], "valid": ["valid.tsv"], "test": ["test.tsv"]}
    assert examples(write(tmp_path / "b", "train.tsv", "test.tsv")).keys() == {"train", "test"}


def test_a_file_to_train_on_alone_is_cut(tmp_path: Path) -> None:
    found = examples(write(tmp_path / "a", "train.tsv"))
    assert list(found.items()) == [
        ("train", ["train.tsv"]),
        ("valid", ["train.tsv"]),
        ("test", ["train.tsv"]),
    ]


def test_what_is_given_goes_before_what_the_folder_has(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", "train.tsv", "valid.tsv", "test.tsv")
    one, other = (
        write(tmp_path / "one", "one.tsv") / "one.tsv",
        write(tmp_path / "b", "train.tsv", "test.tsv"),
    )
    (other / "test.tsv").write_text("source\ttarget\nother 1\t1\n")
    assert examples(folder, test=one) == {"train": ["train.tsv"], "valid": ["valid.tsv"], "test": ["one.tsv"]}
    assert examples(one, valid=folder, test=other) == {
        "train": ["one.tsv"],
        "valid": ["valid.tsv"],
        "test": ["other"],
    }


def test_it_is_measured_on_its_test_part(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", "train.tsv", "valid.tsv", "test.tsv")
    config = DataConfig(tokenizer="word")
    found = prepare_examples.prepare_examples(TEXT_PAIRS, str(folder), None, None, config, print)
    measured, _ = prepare_examples.prepare_eval_examples(
        TEXT_PAIRS, str(folder), config, found.processor, print
    )
    assert {text.split()[0] for text in measured.sources} == {"test.tsv"}


def test_the_task_is_the_train_file_s(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", "test.tsv")
    with pytest.raises(UserError, match=r"test\.tsv, and no file to train on; name the file: .*/test\.tsv\."):
        infer_task(open_path(str(folder)), {})
    assert infer_task(open_path(str(write(folder, "train.tsv"))), {}).name == "translation"


def test_several_forms_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"test\.tsv, train\.csv, train\.tsv have several formats"):
        open_path(str(write(tmp_path / "a", "train.tsv", "train.csv", "test.tsv"))).splits  # noqa: B018
    opened = open_path(str(write(tmp_path / "b", "valid.csv", "test.tsv")))
    assert opened.splits == {"train": opened.whole}
