"""DATA is opened once: its kind, splits and columns are seen, and each folder or zip is listed once."""

import json
import os
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveal.config import DataConfig, ImageConfig
from foveal.core.errors import UserError
from foveal.data.images.image_batches import ImageTrainBatches
from foveal.data.open import OpenedData, open_data, open_path
from foveal.data.prepare_examples import prepare_examples
from foveal.tasks.infer import infer_task
from tests.support.pair_formats import IMAGE_LABEL

SIDE = 4
CONFIG = DataConfig(
    image=ImageConfig(size=SIDE, channels=1, batch_size=8), valid_fraction=0.1, test_fraction=0.1
)


def tiny_image(number: int) -> bytes:
    """Return an image that no other number has."""
    levels = bytes((number >> 4 * place) % 16 * 16 for place in range(SIDE * SIDE))
    return f"P5 {SIDE} {SIDE} 255\n".encode() + levels


def names(count: int) -> list[str]:
    return [f"{'ab'[number % 2]}/{number}.pgm" for number in range(count)]


def write_images(folder: Path, count: int) -> Path:
    for label in "ab":
        (folder / label).mkdir(parents=True)
    for number, name in enumerate(names(count)):
        (folder / name).write_bytes(tiny_image(number))
    return folder


def write_zip(path: Path, count: int) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for number, name in enumerate(names(count)):
            archive.writestr(name, tiny_image(number))
    return path


class Calls:
    """How often each folder was listed, and each zip gone through."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.folders, self.zips = Counter[str](), Counter[str]()
        self._count(monkeypatch, os, "scandir", self._note_folder)
        self._count(monkeypatch, os, "listdir", lambda path=".": self.folders.update([os.fspath(path)]))
        self._count(
            monkeypatch, zipfile.ZipFile, "__init__", lambda _, file, *more: self.zips.update([str(file)])
        )
        self._count(monkeypatch, zipfile.ZipFile, "infolist", lambda one: self.zips.update(["infolist"]))
        self._count(monkeypatch, zipfile.ZipFile, "namelist", lambda one: self.zips.update(["namelist"]))

    def _note_folder(self, path: Any = ".") -> None:
        if not isinstance(path, int):  # a folder of our own that is removed is listed by its descriptor
            self.folders.update([os.fspath(path)])

    def _count(
        self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, note: Callable[..., None]
    ) -> None:
        original = getattr(owner, name)

        def counted(*arguments: Any, **settings: Any) -> Any:
            note(*arguments)
            return original(*arguments, **settings)

        monkeypatch.setattr(owner, name, counted)


def first_batch(data: Path) -> None:
    """Do what `foveal train DATA` does, from the task that is inferred to the first batch."""
    opened = open_data(str(data), print)
    assert infer_task(opened, {}).name == "image-classification"
    prepared = prepare_examples(IMAGE_LABEL, opened, None, None, CONFIG, print)
    ImageTrainBatches(prepared.train.examples, 8, CONFIG.augment, seed=0).batch(0, 0)


COUNTS = [60, pytest.param(200_000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", COUNTS)
def test_a_folder_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    folder = write_images(tmp_path / "images", count)
    calls = Calls(monkeypatch)
    first_batch(folder)
    inside = {path: n for path, n in calls.folders.items() if Path(path).is_relative_to(folder)}
    assert inside == {str(folder): 1, str(folder / "a"): 1, str(folder / "b"): 1}


@pytest.mark.parametrize("count", COUNTS)
def test_a_zip_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    archive = write_zip(tmp_path / "images.zip", count)
    calls = Calls(monkeypatch)
    first_batch(archive)
    assert calls.zips == {str(archive): 1, "namelist": 1}


def test_folders_of_splits_share_one_listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for split in ("train", "val", "test"):
        write_images(tmp_path / "set" / split, 8)
    calls = Calls(monkeypatch)
    opened = open_path(str(tmp_path / "set"))
    assert opened.kind == "images"
    assert [*opened.splits] == ["train", "valid", "test"]
    assert opened.split("valid").location == str(tmp_path / "set" / "val")
    assert {*opened.split("test").listing.walk()} == {*names(8)}
    assert max(calls.folders.values()) == 1


def test_a_table_is_read_once_for_its_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rows.csv").write_text("text,label\nfine,good\n")
    read: list[str] = []

    def column_names(path: Path, encoding: str) -> list[str]:
        read.append(str(path))
        return ["text", "label"]

    monkeypatch.setattr("foveal.data.files.data_part.column_names", column_names)
    opened = open_path(str(tmp_path / "rows.csv"))
    assert opened.kind == "table"
    assert opened.columns == {"text", "label"}
    assert infer_task(opened, {}).name == "text-classification"
    assert opened.first_row == {"text": "fine", "label": "good"}
    assert len(read) == 1


def kinds(folder: Path) -> Iterator[tuple[OpenedData, str, set[str]]]:
    """Yield DATA of each kind, with the expected kind and columns."""

    def write(name: str, text: str) -> OpenedData:
        (folder / name).write_text(text)
        return open_path(str(folder / name))

    yield write("plain.txt", "to be\n"), "text", set()
    yield write("code.ts", "const a = 1;\n"), "text", set()
    yield write("words.conll", "a X\n"), "conll", set()
    yield write("pairs.tsv", "source\ttarget\na\tb\n"), "table", {"source", "target"}
    yield write("broken.csv", ""), "table", set()
    yield write("series.ts", "@classLabel true a b\n@data\n1,2:a\n"), "series", {"values", "label"}
    yield open_path("a.txt,b.txt"), "aligned", set()
    yield open_path(str(folder / "nothing")), "missing", set()
    np.savez(folder / "steps.npz", x=np.zeros((2, 3, 1)), y=np.zeros((2, 3)))
    yield open_path(str(folder / "steps.npz")), "series", {"values", "labels"}
    np.savez(folder / "digits.npz", x_train=np.zeros((2, 4, 4)), y_train=np.zeros(2))
    yield open_path(str(folder / "digits.npz")), "images", set()
    np.savez(folder / "films.npz", clips=np.zeros((2, 3, 4, 4)), label=np.zeros(2))
    yield open_path(str(folder / "films.npz")), "clips", {"clips", "label"}
    (folder / "sounds").mkdir()
    (folder / "sounds/a.wav").write_bytes(b"")
    (folder / "sounds/metadata.jsonl").write_text(json.dumps({"file_name": "a.wav", "text": "a"}))
    yield open_path(str(folder / "sounds")), "audio", {"file_name", "text"}
    (folder / "texts").mkdir()
    (folder / "texts/a.txt").write_text("a")
    yield open_path(str(folder / "texts")), "text", set()


def test_kinds(tmp_path: Path) -> None:
    for opened, kind, columns in kinds(tmp_path):
        assert opened.kind == kind, opened.name
        assert opened.columns == columns, opened.name


def test_a_zip_that_is_none_is_refused_when_its_splits_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "bad.zip").write_text("no zip")
    opened = open_path(str(tmp_path / "bad.zip"))
    with pytest.raises(UserError, match=r"not a folder, nor readable as a zip: .*; get the file again"):
        opened.splits  # noqa: B018
