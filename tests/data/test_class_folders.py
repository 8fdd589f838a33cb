"""A folder for each class in every reader of folders: links, names, subfolders, files beside the files."""

import os
import shutil
import zipfile
from pathlib import Path

import pytest

from foveal.core.errors import UserError
from foveal.data.core.rows import SkippedRow
from foveal.data.open import open_path
from foveal.data.text.corpus import TextFolder
from foveal.tasks.infer import choose_task, infer_task
from tests.support.class_folders import (
    ALL_LABELS,
    CONFIG,
    FOLDERS,
    LABELS,
    files_by_class,
    read_labels,
    write_by_class,
)
from tests.support.image_folders import write_files
from tests.support.pair_formats import AUDIO_LABEL, IMAGE_LABEL, IMAGE_TEXT, SPEECH, TEXT_LABEL

NOT_UTF8 = os.fsdecode(b"caf\xe9")
every_kind = pytest.mark.parametrize("kind", FOLDERS)


@every_kind
@pytest.mark.parametrize("inside", ["", "kind/"])
def test_a_folder_for_each_class_is_taken_for_labels(kind: str, inside: str, tmp_path: Path) -> None:
    """Also with folders for kinds of a class, such as cat/siamese/0.png. Folders of frames are clips."""
    data = write_by_class(tmp_path / "a", kind, inside)
    if not (kind == "texts" and inside):  # a tree of texts is rather a corpus
        assert infer_task(open_path(data), {}).name == FOLDERS[kind].task
    assert read_labels(kind, data) == ALL_LABELS


@every_kind
def test_folders_that_are_links_are_followed(kind: str, tmp_path: Path) -> None:
    write_by_class(tmp_path / "elsewhere", kind)
    (tmp_path / "a").mkdir()
    for label in LABELS:
        (tmp_path / "a" / label).symlink_to(tmp_path / "elsewhere" / label)
    data = str(tmp_path / "a")
    assert infer_task(open_path(data), {}).name == FOLDERS[kind].task
    assert read_labels(kind, data) == ALL_LABELS


@every_kind
def test_links_without_end_and_links_to_one_folder_are_named(kind: str, tmp_path: Path) -> None:
    data = write_by_class(tmp_path / "a", kind)
    (tmp_path / "a/cat/loop").symlink_to(tmp_path)
    with pytest.raises(UserError, match=r"a/cat/loop: a link to a folder around it .*; remove the link"):
        read_labels(kind, data)
    (tmp_path / "a/cat/loop").unlink()
    write_by_class(tmp_path / "elsewhere", kind)
    for name in ("one", "two"):
        (tmp_path / "a" / name).symlink_to(tmp_path / "elsewhere/dog")
    with pytest.raises(UserError, match=r"a/two: a link to .*elsewhere/dog, as .*a/one is; remove one"):
        read_labels(kind, data)
    (tmp_path / "a/two").unlink()
    (tmp_path / "a/one").unlink()
    (tmp_path / "a/one").symlink_to(tmp_path / "a/dog")
    with pytest.raises(UserError, match=r"a/one: a link to .*a/dog, which is read already; remove the link"):
        read_labels(kind, data)


def test_links_in_a_folder_of_running_text_are_followed(tmp_path: Path) -> None:
    write_files(tmp_path / "elsewhere", {"b.txt": b"b", "deep/c.txt": b"c"})
    write_files(tmp_path / "a", {"a.txt": b"a"})
    (tmp_path / "a/more").symlink_to(tmp_path / "elsewhere")
    part = open_path(str(tmp_path / "a")).train
    names = [str(path.relative_to(part.path)) for path in TextFolder(part.path, part.listing).files]
    assert names == ["a.txt", "more/b.txt", "more/deep/c.txt"]


@every_kind
def test_names_of_files_that_are_not_utf8_are_read(kind: str, tmp_path: Path) -> None:
    data = write_by_class(tmp_path / "a", kind, f"{NOT_UTF8}-")
    assert read_labels(kind, data) == ALL_LABELS


@every_kind
def test_names_of_classes_that_are_not_utf8_are_refused(kind: str, tmp_path: Path) -> None:
    data = write_by_class(tmp_path / "a", kind)
    (tmp_path / "a/cat").rename(tmp_path / "a" / NOT_UTF8)
    with pytest.raises(UserError, match=r"the name of the folder 'caf.*' is not UTF-8; rename it"):
        read_labels(kind, data)


@every_kind
@pytest.mark.parametrize("name", ["cat\\0.png", "..\\0.png"])
def test_names_in_zips_may_have_backslashes(kind: str, name: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for path, content in files_by_class(kind).items():
            archive.writestr(path.replace("/", "\\"), content)
        if name.startswith(".."):
            archive.writestr(name, b"")
    if name.startswith(".."):
        with pytest.raises(UserError, match=r"the name '../0.png' leads out of the zip"):
            read_labels(kind, str(tmp_path / "a.zip"))
    else:
        assert read_labels(kind, str(tmp_path / "a.zip")) == ALL_LABELS


@every_kind
def test_names_in_zips_that_are_not_utf8_are_refused(kind: str, tmp_path: Path) -> None:
    data = tmp_path / "a.zip"
    write_files(data, {name.replace("cat", "né"): content for name, content in files_by_class(kind).items()})
    data.write_bytes(data.read_bytes().replace("né".encode(), b"n\xe9e"))
    with pytest.raises(UserError, match=r"a.zip: the name of a file in it is not UTF-8; make the zip again"):
        read_labels(kind, str(data))


@pytest.mark.parametrize("kind", ["pictures", "recordings", "texts"])
def test_names_with_backslashes_on_disk_are_no_running_text(kind: str, tmp_path: Path) -> None:
    files = {name.replace("/", "\\"): content for name, content in files_by_class(kind).items()}
    with pytest.raises(UserError, match="have backslashes in place of folders; give the zip itself"):
        infer_task(open_path(write_files(tmp_path / "a", files)), {})


@pytest.mark.parametrize("kind", ["pictures", "recordings", "clips"])
def test_tables_may_name_files_with_backslashes_and_in_an_encoding(kind: str, tmp_path: Path) -> None:
    files = files_by_class(kind, f"{NOT_UTF8}-")
    data = write_files(tmp_path / "a", files)
    names = dict.fromkeys(os.path.dirname(name) if kind == "clips" else name for name in files)
    rows = "".join(f"{name},{name[:3]}\n".replace("/", "\\") for name in names)
    table = os.fsencode("file_name,label\n" + rows)
    (tmp_path / "a/metadata.csv").write_bytes(table)
    part = open_path(data, "latin-1").train
    rows_read = FOLDERS[kind].data_format.read(part, CONFIG, [])
    assert [row.fields["label"] for row in rows_read] == [name[:3] for name in names]


@pytest.mark.parametrize("kind", ["pictures", "recordings"])
@pytest.mark.parametrize("suffix", [".txt", ".json", ".xml"])
@pytest.mark.parametrize("location", ["a", "a.zip"])
def test_files_beside_the_files_are_no_files_of_a_class(
    kind: str, suffix: str, location: str, tmp_path: Path
) -> None:
    files = files_by_class(kind)
    beside = {f"{os.path.splitext(name)[0]}{suffix}": f"this is {name}".encode() for name in files}
    opened = open_path(write_files(tmp_path / location, files | beside))
    if suffix == ".txt":
        with pytest.raises(UserError, match=r"with a \.txt beside each: .* choose one: --task .* or --task"):
            infer_task(opened, {})
    else:
        assert infer_task(opened, {}).name == FOLDERS[kind].task
        assert f"{suffix} beside them not read" in choose_task(opened, {}).reason
    assert read_labels(kind, opened.name) == ALL_LABELS
    read = IMAGE_TEXT if kind == "pictures" else SPEECH
    if suffix == ".txt":
        texts = {row.fields["target"] for row in read.read(opened.train, CONFIG, [])}
        assert texts == {f"this is {name}" for name in files}


@pytest.mark.parametrize("kind", ["pictures", "recordings"])
def test_texts_beside_files_without_folders_are_texts_or_labels(kind: str, tmp_path: Path) -> None:
    flat = {name.replace("/", "-"): content for name, content in files_by_class(kind).items()}
    texts = {f"{os.path.splitext(name)[0]}.txt": name.encode() for name in flat}
    opened = open_path(write_files(tmp_path / "texts", flat | texts))
    assert infer_task(opened, {}).name == ("captioning" if kind == "pictures" else "speech-recognition")
    labels = {name: name[:3].encode() for name in texts}
    opened = open_path(write_files(tmp_path / "labels", flat | labels))
    with pytest.raises(UserError, match="many of which are equal: it fits several tasks equally well"):
        infer_task(opened, {})
    read = IMAGE_LABEL if kind == "pictures" else AUDIO_LABEL
    assert sorted(row.fields["label"] for row in read.read(opened.train, CONFIG, [])) == ALL_LABELS


def test_a_file_without_a_text_beside_it_is_skipped(tmp_path: Path) -> None:
    files = files_by_class("pictures")
    texts = {f"{os.path.splitext(name)[0]}.txt": b"a text" for name in files}
    del texts["cat/0.txt"]
    texts["cat/2.txt"] = b"\xff\xe9"
    part = open_path(write_files(tmp_path / "a", files | texts)).train
    skipped: list[object] = []
    assert len([*IMAGE_TEXT.read(part, CONFIG, skipped)]) == len(files) - 2  # type: ignore[arg-type]
    assert "no text beside it; write cat/0.txt" in str(skipped[0])
    assert "cat/2.txt: not UTF-8 at byte 0" in str(skipped[1])


@pytest.mark.parametrize("beside", [".json", ".xml", ".ann", ".md"])
@pytest.mark.parametrize("location", ["a", "a.zip"])
def test_files_beside_texts_of_a_class_are_skipped_and_said(
    beside: str, location: str, tmp_path: Path
) -> None:
    files = files_by_class("texts")
    more = {f"{os.path.splitext(name)[0]}{beside}": b"facts" for name in files}
    opened = open_path(write_files(tmp_path / location, files | more))
    assert "text-classification" in str(choose_task(opened, {}))
    skipped: list[SkippedRow] = []
    assert sorted(row.fields["label"] for row in TEXT_LABEL.read(opened.train, CONFIG, skipped)) == ALL_LABELS
    assert len(skipped) == len(more)
    assert {row.reason for row in skipped} == {
        "beside a file of that name, which is read in its place; move it away"
    }


@every_kind
@pytest.mark.parametrize("location", ["a", "a.zip"])
def test_a_class_without_files_is_said_and_not_named_as_a_class(
    kind: str, location: str, tmp_path: Path
) -> None:
    if location == "a.zip" and kind in ("recordings", "texts"):
        pytest.skip("unpacked without empty folders")
    write_by_class(tmp_path / location, kind)
    if location == "a":
        (tmp_path / "a/bird").mkdir()
    else:
        with zipfile.ZipFile(tmp_path / location, "a") as archive:
            archive.mkdir("bird")
    opened = open_path(str(tmp_path / location))
    assert "in the folders cat, dog (bird empty)" in choose_task(opened, {}).reason


TEXT = b"The cat sat on the mat, and the dog lay under the tree. " * 4
NO_CLASSES = {
    "chapters": [f"{book}/chapter{number}.txt" for book in ("emma", "sanditon") for number in range(5)],
    "one file each": [f"{book}/text.txt" for book in ("emma", "sanditon", "persuasion")],
    "source code": [f"{package}/{number}.py" for package in ("core", "ui") for number in range(5)],
    "a tree": [f"{year}/{month}/{day}.txt" for year in "ab" for month in "cd" for day in range(5)],
    "texts beside": [f"{number}.txt" for number in range(9)] + ["notes/1.txt", "notes/2.txt"],
}
PERHAPS_CLASSES = {
    "numbered": [f"vol{volume}/{number}.txt" for volume in (1, 2) for number in range(5)],
    "few": [f"{folder}/{number}.txt" for folder in ("cat", "dog") for number in range(2)],
}


@pytest.mark.parametrize("what", NO_CLASSES)
def test_folders_of_texts_that_are_no_classes_are_running_text(what: str, tmp_path: Path) -> None:
    data = write_files(tmp_path / "a", dict.fromkeys(NO_CLASSES[what], TEXT))
    assert infer_task(open_path(data), {}).name == "language-model"


@pytest.mark.parametrize("what", [*PERHAPS_CLASSES, "long"])
def test_folders_of_texts_that_may_be_classes_are_refused_with_both_tasks(what: str, tmp_path: Path) -> None:
    names = PERHAPS_CLASSES.get(what, [f"{who}/{n}.txt" for who in ("austen", "eliot") for n in range(5)])
    data = write_files(tmp_path / "a", dict.fromkeys(names, TEXT * (500 if what == "long" else 1)))
    with pytest.raises(UserError, match="choose one: --task language-model or --task text-classification"):
        infer_task(open_path(data), {})


@pytest.mark.parametrize("location", ["a", "a.zip"])
@pytest.mark.parametrize("parts", ["", "train/ test/"])
def test_texts_by_class_with_and_without_splits(location: str, parts: str, tmp_path: Path) -> None:
    files = files_by_class("texts")
    given = {f"{part}{name}": files[name] for part in parts.split() or [""] for name in files}
    more = {"README": b"about", f"{parts.split()[0] if parts else ''}unsup/1.txt": b"no label"}
    opened = open_path(write_files(tmp_path / location, given | more))
    assert infer_task(opened, {}).name == "text-classification"
    assert str(choose_task(opened, {})).endswith("in the folders cat, dog; else --task language-model")
    assert [*opened.splits] == (["train", "test"] if parts else ["train"])
    skipped: list[object] = []
    rows = [*TEXT_LABEL.read(opened.train, CONFIG, skipped)]  # type: ignore[arg-type]
    assert sorted(row.fields["label"] for row in rows) == ALL_LABELS
    assert "in a folder unsup beside those of labels" in str(skipped[-1])
    assert len(skipped) == (1 if parts else 2)  # the README


def test_texts_by_class_in_another_encoding(tmp_path: Path) -> None:
    data = write_by_class(tmp_path / "a", "texts")
    for path in (tmp_path / "a").rglob("*.txt"):
        path.write_bytes("le café ".encode("cp1252") + path.read_bytes())
    with pytest.raises(UserError, match=r"data\.encoding=cp1252 \(Latin-1\) or"):
        read_labels("texts", data)
    rows = [*TEXT_LABEL.read(open_path(data, "cp1252").train, CONFIG, [])]
    assert rows[0].fields["source"].startswith("le café the text number")
    shutil.rmtree(data)
