"""Layouts of public data sets are read as they stand: the task, the splits, and the target of every file."""

import json
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
from foveal.store.cache import cache_folder, shorten_unpacked_paths
from foveal.tasks.infer import choose_task, infer_task
from foveal.tasks.vqa.data_settings import VQADataConfig
from tests.support.class_folders import CONFIG
from tests.support.image_folders import write_files
from tests.support.pair_formats import ANSWERS, AUDIO_LABEL, IMAGE_LABEL, IMAGE_TEXT, SPEECH
from tests.support.public_layouts import LAYOUTS, PICTURES, Targets, captions

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
    rows = FORMATS[task].source.read_unlabeled(opened.sources(FORMATS[task].source.table), CONFIG, [])
    in_tars = sum(map(len, targets.values())) if name == "WebDataset" else 0
    assert len([*rows]) == sum(name.endswith(MEDIA) for name in files) + in_tars


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


def skipped_rows(data: str, task: str) -> list[str]:
    """Return the places and reasons of the rows that are skipped in training, as a user reads them."""
    skipped: list[Any] = []
    for part in open_path(data).splits.values():
        _ = [*FORMATS[task].read(part, CONFIG, skipped)]
    return [shorten_unpacked_paths(f"{row.location}: {row.reason}") for row in skipped]


DAMAGED = {
    "a competition": ("train.csv", b"one\n", 12),
    "UrbanSound8K": ("metadata/U.csv", b"one\n", 12),
    "LJSpeech": ("metadata.csv", b"one\n", 11),
    "LibriSpeech, a part": ("84/1/84-1.trans.txt", b"one\n", 6),
    "Flickr8k, tokens": ("Flickr8k_text/Flickr8k.token.txt", b"one\n", 21),
    "Speech Commands": ("testing_list.txt", b"\xff.wav\n", 4),
    "CUB-200": ("images.txt", b"99 red/99.jpg\n", 17),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_row_of_a_layout_is_skipped_at_its_place(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, task, targets = LAYOUTS[name]
    table, row, line = DAMAGED[name]
    monkeypatch.chdir(tmp_path)
    data = write_files(Path("data"), {**files, table: files[table] + row})
    skipped = skipped_rows(data, task)
    assert len(skipped) == 1
    assert skipped[0].startswith(f"data/{table}, line {line}: ")
    parts = open_path(data).splits
    assert sum(len([*FORMATS[task].read(part, CONFIG, [])]) for part in parts.values()) == sum(
        map(len, targets.values())
    )


def test_a_damaged_annotation_is_skipped_and_a_damaged_file_refused(tmp_path: Path) -> None:
    files, task, _ = LAYOUTS["COCO"]
    table = "annotations/captions_train2017.json"
    content = json.loads(files[table])
    content["annotations"].append({"image_id": 99, "caption": "nothing"})
    data = write_files(tmp_path / "a", {**files, table: json.dumps(content).encode()})
    assert [row.split(": ")[0] for row in skipped_rows(data, task)] == [f"{data}/{table}, annotation 11"]
    data = write_files(tmp_path / "b", {**files, table: files[table] + b"}"})
    with pytest.raises(UserError, match=table):
        infer_task(open_path(data), {})


def test_a_message_names_the_files_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, task, _ = LAYOUTS["Flickr8k, captions above"]
    monkeypatch.chdir(tmp_path)
    table = files["captions.txt"] + b'99.jpg,"two\nlines"\n98.jpg,"one"\n'
    data = write_files(Path("data"), {**files, "captions.txt": table, "Images/0.jpg": b"no picture"})
    skipped = skipped_rows(data, task)
    assert [row.partition(": ")[0] for row in skipped if "no such file" in row] == [
        "data/captions.txt, line 12",
        "data/captions.txt, line 14",
    ]
    assert "no such file: Images/99.jpg" in skipped[-2] + skipped[-1] + skipped[0]
    train = open_path(data).train
    message = shorten_unpacked_paths(f"{train.table}: no column; {train.path}/Images/0.jpg: damaged")
    assert message == "data/captions.txt: no column; data/Images/0.jpg: damaged"
    message = shorten_unpacked_paths(f"{train.table}: no usable row, the first is line 12: no such file")
    assert message == "data/captions.txt: no usable row, the first is line 14: no such file"
    assert str(cache_folder()) not in "".join(skipped)


def test_all_shards_of_a_split_are_read(tmp_path: Path) -> None:
    files = dict(LAYOUTS["a competition"].files)
    rows = files.pop("train.csv").split(b"\n")
    files["train_1.csv"] = b"\n".join(rows[:6])
    files["train_2.csv"] = b"\n".join([rows[0], *rows[6:]])
    data = write_files(tmp_path / "a", files)
    assert read_targets(open_path(data), "image-classification") == LAYOUTS["a competition"].targets


def test_tables_of_the_same_name_in_two_folders_are_refused(tmp_path: Path) -> None:
    files = dict(LAYOUTS["a competition"].files)
    table = files.pop("train.csv")
    files |= {"a/train.csv": table, "b/train.csv": table.replace(b"red", b"pink")}
    with pytest.raises(UserError, match=r"a/train\.csv, b/train\.csv are for the same split"):
        infer_task(open_path(write_files(tmp_path / "a", files)), {})


def test_files_that_change_their_names_are_read_again(tmp_path: Path) -> None:
    files, task, targets = LAYOUTS["a competition"]
    data = write_files(tmp_path / "a", files)
    assert read_targets(open_path(data), task) == targets
    for file in (tmp_path / "a/train").iterdir():
        file.rename(file.with_suffix(".png"))
    assert read_targets(open_path(data), task) == targets


def test_columns_keep_their_names(tmp_path: Path) -> None:
    files = LAYOUTS["Common Voice"].files
    opened = open_path(write_files(tmp_path / "a", files))
    assert set(opened.columns) == {"file_name", "client", "path", "sentence", "text"}
    config = CONFIG.model_copy(update={"text": "sentence"})
    assert len([*SPEECH.read(opened.train, config, [])]) == 10


LONG = b"id,text\n" + b"".join(b"%d,%s %d\n" % (number, b"word " * 100, number) for number in range(3))


@pytest.mark.parametrize(
    "table",
    [
        {"sizes.csv": b"file,width\n0.jpg,8\n1.jpg,8\n2.jpg,8\n"},
        {"long.csv": LONG},
        {"up.csv": b"file,label\n../a/0.jpg,x\n../a/1.jpg,y\n../a/2.jpg,z\n"},
    ],
)
def test_tables_beside_captions_are_no_layout(table: dict[str, bytes], tmp_path: Path) -> None:
    texts = {f"{Path(name).stem}.txt": f"a caption of {name}".encode() for name in PICTURES}
    opened = open_path(write_files(tmp_path / "a", PICTURES | texts | table))
    assert opened.layout is None
    assert infer_task(opened, {}).name == "captioning"


def test_absolute_names_are_no_layout(tmp_path: Path) -> None:
    rows = "".join(f"{tmp_path}/a/{name},a {name}\n" for name in PICTURES)
    table = f"image,caption\n{rows}".encode()
    opened = open_path(write_files(tmp_path / "a", PICTURES | {"captions.txt": table}))
    assert opened.layout is None


def test_a_column_of_another_name_can_be_named(tmp_path: Path) -> None:
    files = dict(LAYOUTS["a competition"].files)
    files["train.csv"] = files["train.csv"].replace(b"id,label", b"id,diagnosis")
    opened = open_path(write_files(tmp_path / "a", files))
    config = CONFIG.model_copy(update={"label": "diagnosis"})
    assert len([*IMAGE_LABEL.read(opened.train, config, [])]) == 10


def test_parts_of_librispeech_in_a_folder_are_splits(tmp_path: Path) -> None:
    files, task, targets = LAYOUTS["LibriSpeech"]
    part = LAYOUTS["LibriSpeech, a part"].files
    inside = {f"LibriSpeech/{name}": content for name, content in files.items()}
    others = {f"LibriSpeech/extra/{name}": content for name, content in part.items()}
    opened = open_path(write_files(tmp_path / "a", inside | others))
    assert read_targets(opened, task) == targets
    assert "2 in folders of no split not read" in opened.evidence.reason


@pytest.mark.parametrize("name", ["LJSpeech", "Speech Commands", "Flickr8k, tokens", "COCO", "CUB-200"])
def test_a_table_that_cannot_be_read_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = LAYOUTS[name].files
    data = write_files(tmp_path / "a", files)
    open_on_disk = Path.open

    def refuse(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.suffix in (".txt", ".csv", ".json") and path.is_relative_to(data):
            raise PermissionError(13, "Permission denied", str(path))
        return open_on_disk(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(UserError, match=rf"{data}/.*: can't read: Permission denied"):
        _ = open_path(data).whole


def test_predict_reads_the_only_table_of_questions(tmp_path: Path) -> None:
    pictures = {f"images/{name}": content for name, content in PICTURES.items()}
    rows = "".join(f"{n}.jpg,which {n},{n % 2}\n" for n in range(10))
    questions = f"image,question,answer\n{rows}".encode()
    opened = open_path(write_files(tmp_path / "a", pictures | {"questions.csv": questions}))
    part = opened.sources(ANSWERS.source.table)
    assert len([*ANSWERS.read_unlabeled(part, VQADataConfig(), [])]) == 10
    assert opened.sources(IMAGE_LABEL.source.table) is opened.unpacked


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
