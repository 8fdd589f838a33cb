"""What is said of rows, of every kind of data: two labels of one source, rows held out that were trained on,
held-out data without labels, too few rows."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveal.core.errors import UserError
from foveal.data.files.data_part import open_part
from foveal.data.prepare_corpus import prepare_corpus
from foveal.data.prepare_examples import prepare_examples
from tests.support.class_folders import CONFIG, FOLDERS, files_by_class
from tests.support.clip_folders import clip_table
from tests.support.image_folders import encode_png, random_images, write_files
from tests.support.pair_formats import SERIES_LABEL, TEXT_LABEL

KINDS = [*FOLDERS, "table", "series"]
every_kind = pytest.mark.parametrize("kind", KINDS)
Pairs = list[tuple[int, str]]
TEN: Pairs = [(number, "cat" if number % 2 else "dog") for number in range(10)]


def write(path: Path, kind: str, pairs: Pairs, labeled: bool = True) -> str:
    """Write one row for each number and label; equal numbers are equal sources. Return the path."""
    if kind == "table":
        names = ["text", "label"] if labeled else ["text"]
        rows = [[f"a text {number}", label][: len(names)] for number, label in pairs]
        path = path.with_suffix(".csv")
        path.write_text("\n".join(",".join(row) for row in [names, *rows]))
    elif kind == "series":
        draw = np.random.default_rng
        series = [{"values": draw(n).normal(size=(9, 2)).tolist(), "label": label} for n, label in pairs]
        chosen = series if labeled else [{"values": row["values"]} for row in series]
        path = path.with_suffix(".jsonl")
        path.write_text("\n".join(map(json.dumps, chosen)))
    else:
        sources: dict[int, dict[str, bytes]] = {}
        for name, content in files_by_class(kind).items():
            number = int(name.split("/")[1].split(".")[0])
            sources.setdefault(number, {})[name.split("/", 1)[1]] = content
        files: dict[str, bytes] = {}
        for place, (number, label) in enumerate(pairs):
            folder = f"{label}/{place}-" if labeled else f"{place}-"
            files |= {f"{folder}{name}": content for name, content in sources[number % 8].items()}
        write_files(path, files)
    return str(path)


def prepare(
    kind: str,
    data: str,
    log: Callable[[str], None] = print,
    valid: str | None = None,
    test: str | None = None,
) -> Any:
    formats = {"table": TEXT_LABEL, "series": SERIES_LABEL}
    data_format = formats[kind] if kind in formats else FOLDERS[kind].data_format
    return prepare_examples(data_format, data, valid, test, CONFIG, log)


@every_kind
def test_one_source_with_two_labels_is_told_with_its_rows(kind: str, tmp_path: Path) -> None:
    said: list[str] = []
    prepare(kind, write(tmp_path / "a", kind, [*TEN[:8], (3, "dog"), (5, "cat")]), said.append)
    (line,) = [line for line in said if "another label" in line]
    assert line.startswith("1 row with the source of another row, but another label: ")
    assert "('dog')" in line
    assert "('cat')" in line
    said.clear()
    prepare(kind, write(tmp_path / "b", kind, TEN[:8]), said.append)
    assert not [line for line in said if "another label" in line]


@every_kind
@pytest.mark.parametrize("split", ["valid", "test"])
def test_held_out_rows_of_the_training_are_told(kind: str, split: str, tmp_path: Path) -> None:
    data, said = write(tmp_path / "a", kind, TEN[:8]), list[str]()
    paths = {split: data}
    prepare(kind, data, said.append, valid=paths.get("valid"), test=paths.get("test"))
    assert f"{split}: 8 of 8 sources are also in the training split" in said


@pytest.mark.parametrize("split", ["valid", "test"])
def test_the_same_text_to_learn_and_to_measure_is_told(split: str, tmp_path: Path) -> None:
    path, said = tmp_path / "a.txt", list[str]()
    path.write_text("To be, or not to be, that is the question. " * 50)
    other = shutil.copy(path, tmp_path / "b.txt")
    paths = {"valid": None, "test": None} | {split: str(other)}
    prepare_corpus(str(path), CONFIG, paths["valid"], paths["test"], said.append)
    assert f"{split}: the same text as the training split, so its loss says nothing about new text" in said


@every_kind
@pytest.mark.parametrize("split", ["valid", "test"])
def test_held_out_data_without_labels_are_refused_in_one_line(kind: str, split: str, tmp_path: Path) -> None:
    if kind == "clips":
        pytest.skip("folders of frames are folders, too")
    data = write(tmp_path / "a", kind, TEN[:8])
    paths = {split: write(tmp_path / "b", kind, TEN[:8], labeled=False)}
    with pytest.raises(UserError, match=rf"so it is no {split} set; .* leave out --{split} \(foveal predict"):
        prepare(kind, data, valid=paths.get("valid"), test=paths.get("test"))


@every_kind
def test_a_test_part_without_labels_is_not_used_and_said(kind: str, tmp_path: Path) -> None:
    if kind == "clips":
        pytest.skip("folders of frames are folders, too")
    said: list[str] = []
    (tmp_path / "a").mkdir()
    write(tmp_path / "a/train", kind, TEN[:8])
    write(tmp_path / "a/test", kind, TEN[:8], labeled=False)
    prepared = prepare(kind, str(tmp_path / "a"), said.append)
    assert len(prepared.train) + len(prepared.valid) + len(prepared.test) == 8
    assert "so it is not used as test set; foveal predict reads it" in said[0]


@pytest.mark.parametrize("location", ["test.csv", "test.jsonl", "test/metadata.csv"])
@pytest.mark.parametrize("value", ["", " ", None])
def test_a_column_of_labels_that_is_empty_is_as_none(
    location: str, value: str | None, tmp_path: Path
) -> None:
    kind = "pictures" if "/" in location else "table"
    first = "file_name" if kind == "pictures" else "text"
    labeled: list[dict[str, str | None]] = [
        {first: f"{number}.png" if kind == "pictures" else f"a text {number}", "label": label}
        for number, label in TEN
    ]
    blank = [row | {"label": value} for row in labeled]
    for split, rows in (("train", labeled), ("test", blank)):
        path = tmp_path / "a" / location.replace("test", split)
        files = {f"{number}.png": encode_png(picture) for number, picture in enumerate(random_images(10))}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_files(path.parent, files if kind == "pictures" else {})
        lines = [json.dumps(row) for row in rows]
        if path.suffix == ".csv":
            lines = [f"{first},label", *(f"{row[first]},{row['label'] or ''}" for row in rows)]
        path.write_text("\n".join(lines))
    said: list[str] = []
    assert prepare(kind, str(tmp_path / "a"), said.append).test is not None
    assert "the column 'label' is empty, so it is not used as test set; foveal predict reads it" in said[0]
    train, test = (path.with_name(path.name.replace("test", split)) for split in ("train", "test"))
    if kind == "pictures":
        train, test = tmp_path / "a/train", tmp_path / "a/test"
    with pytest.raises(UserError, match="the column 'label' is empty, so it is no test set"):
        prepare(kind, str(train), test=str(test))


@every_kind
def test_so_few_rows_that_nothing_can_be_learned_are_refused(kind: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a single row that can be used; give more"):
        prepare(kind, write(tmp_path / "a", kind, TEN[:1]))
    with pytest.raises(UserError, match="no rows for the test set; give more rows"):
        prepare(kind, write(tmp_path / "b", kind, TEN[:2]))
    with pytest.raises(
        UserError, match=r"only the label '\w+' is in the training rows \(1\), since 2 are held out; give"
    ):
        prepare(kind, write(tmp_path / "c", kind, TEN[:3]))
    given = write(tmp_path / "train", kind, [(number, "cat") for number in range(8)])
    other = write(tmp_path / "valid", kind, TEN[:4])
    with pytest.raises(
        UserError,
        match=r"only the label 'cat' is in the training rows \(8\), while held-out rows have others; give",
    ):
        prepare(kind, given, valid=other)
    with pytest.raises(UserError, match=r"'cat': at least two classes are needed"):
        prepare(kind, write(tmp_path / "d", kind, [(number, "cat") for number in range(8)]))


def test_a_metadata_table_without_labels_is_none_of_a_test_set(tmp_path: Path) -> None:
    files = {Path(name).name: content for name, content in files_by_class("pictures").items()}
    rows = [(name, "cat" if place % 2 else "dog") for place, name in enumerate(files)]
    data = write_files(tmp_path / "a", files | {"metadata.csv": clip_table("label", rows)})
    other = write_files(tmp_path / "b", files | {"metadata.csv": clip_table("text", rows)})
    with pytest.raises(UserError, match="no column 'label' among 'file_name', 'text', so it is no test set"):
        prepare("pictures", data, test=other)


def test_the_names_of_json_lines_that_can_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"text": "é"}\n'.encode("cp1252"))
    with pytest.raises(UserError, match=r"a\.jsonl, line 1: not UTF-8 at byte 10 .*data\.encoding=cp1252"):
        open_part(str(path)).known_columns()
    assert open_part(str(path), encoding="cp1252").known_columns() == ("text",)
