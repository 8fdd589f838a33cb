"""Layouts of public data sets are read as they stand: the task, the splits, and the target of every file."""

import pkgutil
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from foveal.core.errors import UserError
from foveal.data import layouts
from foveal.data.layouts import layout
from foveal.data.open import OpenedData, open_path
from foveal.tasks.infer import choose_task, infer_task
from tests.support.class_folders import CONFIG
from tests.support.image_folders import write_files
from tests.support.pair_formats import AUDIO_LABEL, IMAGE_LABEL, IMAGE_TEXT, SPEECH
from tests.support.public_layouts import LAYOUTS, Targets, captions

FORMATS = {
    "captioning": IMAGE_TEXT,
    "speech-recognition": SPEECH,
    "audio-classification": AUDIO_LABEL,
    "image-classification": IMAGE_LABEL,
}
MEDIA = (".jpg", ".png", ".wav", ".mp3", ".flac")


def read_targets(opened: OpenedData, task: str) -> Targets:
    """Return the sorted targets of each split, of which no row may be skipped."""
    skipped: list[Any] = []
    data_format = FORMATS[task]
    splits = {
        split: sorted(row.fields[data_format.target.field] for row in data_format.read(part, CONFIG, skipped))
        for split, part in opened.splits.items()
    }
    assert not skipped
    return {str(split): targets for split, targets in splits.items()}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_read_as_it_stands(name: str, tmp_path: Path) -> None:
    files, task, targets = LAYOUTS[name]
    opened = open_path(write_files(tmp_path / "my data", files))
    assert infer_task(opened, {}).name == task
    assert read_targets(opened, task) == targets
    assert "metadata.csv" not in choose_task(opened, {}).reason or name == "LJSpeech"
    rows = FORMATS[task].source.read_unlabeled(opened.all_rows, CONFIG, [])
    assert len([*rows]) == sum(name.endswith(MEDIA) for name in files)


def test_every_layout_has_an_example(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And no folder is that of two layouts."""
    names = [module.name for module in pkgutil.iter_modules(layouts.__path__) if module.name != "layout"]
    finds = {name: __import__(f"{layouts.__name__}.{name}", fromlist=["find"]).find for name in names}
    recognized = Counter[str]()
    for name, (files, *_) in LAYOUTS.items():
        part = open_path(write_files(tmp_path / name.replace(" ", "-"), files)).unpacked
        ours = [each for each, find in finds.items() if find(part) is not None]
        assert len(ours) == 1, (name, ours)
        recognized.update(ours)
    assert {*recognized} == {*names}


def test_a_table_that_changes_is_read_again(tmp_path: Path) -> None:
    files = LAYOUTS["LJSpeech"].files
    data = write_files(tmp_path / "a", files)
    assert len(read_targets(open_path(data), "speech-recognition")["train"]) == 10
    (tmp_path / "a/metadata.csv").write_bytes(files["metadata.csv"].replace(b"LJ-9|raw", b"LJ-8|raw"))
    assert len(read_targets(open_path(data), "speech-recognition")["train"]) == 10
    rows = [*SPEECH.read(open_path(data).train, CONFIG, [])]
    assert Counter(Path(row.fields["file"]).name for row in rows)["LJ-8.wav"] == 2
    shutil.move(tmp_path / "a/wavs/LJ-0.wav", tmp_path / "b.wav")
    skipped: list[Any] = []
    assert len([*SPEECH.read(open_path(data).train, CONFIG, skipped)]) == 9
    assert "no such file" in str(skipped[0])


@pytest.mark.parametrize("name", ["a competition", "UrbanSound8K", "COCO"])
def test_a_damaged_row_of_a_layout_is_refused(name: str, tmp_path: Path) -> None:
    files = dict(LAYOUTS[name].files)
    table = next(name for name in files if name.endswith((".csv", ".json")))
    files[table] += b"one\n" if table.endswith(".csv") else b"}"
    with pytest.raises(UserError, match=rf"{table}"):
        infer_task(open_path(write_files(tmp_path / "a", files)), {})


def test_several_tables_of_the_same_files_are_refused(tmp_path: Path) -> None:
    files = dict(LAYOUTS["Flickr8k, captions above"].files)
    files["more.csv"] = files["captions.txt"]
    with pytest.raises(UserError, match=r"captions.txt, more.csv name the files in it; keep one"):
        infer_task(open_path(write_files(tmp_path / "a", files)), {})
    files["validated.csv"] = files["captions.txt"]
    assert read_targets(open_path(write_files(tmp_path / "b", files)), "captioning") == {
        "train": captions(range(10))
    }


@pytest.mark.parametrize(
    "table",
    [
        {"index.csv": b"path,width\ncat/1.png,8\ndog/1.png,8\n"},
        {"sizes.csv": b"width,name\n1,a\n1,b\n"},
        {"val_solution.csv": b"id,answer\n1,a\n2,b\n"},
        {"words.txt": b"1\n2\n3\n"},
        {"cat/notes.csv": b"name,text\n1.png,what\n"},
    ],
)
def test_tables_beside_classes_are_no_layout(table: dict[str, bytes], tmp_path: Path) -> None:
    pictures = LAYOUTS["Flickr8k, captions beside"].files
    files = {
        f"{label}/{name}": pictures[f"{name[0]}.jpg"]
        for label in ("cat", "dog")
        for name in ("1.png", "2.png")
    }
    opened = open_path(write_files(tmp_path / "a", files | table))
    assert layout.find_layout(opened.unpacked) is None
    assert infer_task(opened, {}).name == "image-classification"
