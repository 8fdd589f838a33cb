"""Folders of files with a text or a label each: every file is a row or skipped, and none is outside."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from foveal.core.errors import UserError
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.files.data_part import open_part
from foveal.data.files.folders import FILE_FIELD, read_folder
from tests.support.clip_folders import CLIP_CONFIG, clip_table, random_clip
from tests.support.image_folders import CONTAINERS, encode_png, write_files
from tests.support.pair_formats import CLIP_LABEL
from tests.support.recorded_calls import record_calls


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """a.wav, inside/b.wav and, beside the folder, c.wav."""
    made = tmp_path / "data"
    (made / "inside").mkdir(parents=True)
    for name in ("a.wav", "inside/b.wav", "../c.wav"):
        (made / name).write_text("sound")
    return made


def used(rows: list[Row | SkippedRow]) -> list[dict[str, Any]]:
    return [row.fields for row in rows if isinstance(row, Row)]


def skipped(rows: list[Row | SkippedRow]) -> list[str]:
    return [f"{row.location}: {row.reason}" for row in rows if isinstance(row, SkippedRow)]


@pytest.mark.parametrize("column", ["text", "label"])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_table_in_the_folder(form, column, folder):
    table = folder / f"metadata.{form}"
    if form == "csv":
        table.write_text(f"id,file_name,{column}\n1,a.wav,one\n2,inside/b.wav,two\n")
    else:
        lines = (
            {"file_name": name, column: text} for name, text in (("a.wav", "one"), ("inside/b.wav", "two"))
        )
        table.write_text("\n".join(map(json.dumps, lines)))
    rows = [*read_folder(open_part(str(folder)), [column])]
    assert used(rows) == [
        {FILE_FIELD: folder / "a.wav", column: "one"},
        {FILE_FIELD: folder / "inside/b.wav", column: "two"},
    ]
    assert rows[1].location == f"{table}, line {3 if form == 'csv' else 2}"


def test_files_that_are_missing_or_outside_are_skipped(folder):
    (folder / "link.wav").symlink_to(folder.parent / "c.wav")
    (folder / "inner.wav").symlink_to("a.wav")
    outside = str(folder.parent / "c.wav")
    names = ["a.wav", "none.wav", "../c.wav", outside, "link.wav", "inside", "inside/../a.wav", "inner.wav"]
    names += ["", ".", "x" * 5000]
    table = folder / "metadata.csv"
    table.write_text("file_name,text\n" + "".join(f"{name},x\n" for name in names))
    rows = [*read_folder(open_part(str(folder)), ["text"])]
    assert [fields[FILE_FIELD].name for fields in used(rows)] == ["a.wav", "a.wav", "inner.wav"]
    found = skipped(rows)
    assert found[:5] == [
        f"{table}, line 3: no such file: none.wav; fix the name or leave the row out",
        f"{table}, line 4: ../c.wav leads out of the folder; move the file into it",
        f"{table}, line 5: {outside} leads out of the folder; move the file into it",
        f"{table}, line 6: link.wav leads out of the folder; move the file into it",
        f"{table}, line 7: no such file: inside; fix the name or leave the row out",
    ]
    assert [line.split(":")[0] for line in found[5:]] == [
        f"{table}, line {number}" for number in (10, 11, 12)
    ]


def test_rows_that_the_table_loses_are_skipped(folder):
    (folder / "metadata.csv").write_text("file_name,text\na.wav,one\na.wav,two,three\na.wav,four\n")
    rows = [*read_folder(open_part(str(folder)), ["text"])]
    assert [fields["text"] for fields in used(rows)] == ["one", "four"]
    assert "line 3: 3 fields where the header has 2" in skipped(rows)[0]


def test_a_folder_for_each_class(tmp_path):
    names = ["cat/1.wav", "cat/more/2.wav", "dog/1.wav", "README", ".git/3.wav", "dog/.hidden"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("sound")
    (tmp_path.parent / "outside.wav").write_text("sound")
    (tmp_path / "dog" / "link.wav").symlink_to(tmp_path.parent / "outside.wav")
    (tmp_path / "dog" / "broken.wav").symlink_to("nothing")
    rows = [*read_folder(open_part(str(tmp_path)), ["label"])]
    assert [(str(fields[FILE_FIELD].relative_to(tmp_path)), fields["label"]) for fields in used(rows)] == [
        ("cat/1.wav", "cat"),
        ("cat/more/2.wav", "cat"),
        ("dog/1.wav", "dog"),
    ]
    assert skipped(rows) == [
        f"{tmp_path}, README: not in a folder of a label; move it to one",
        f"{tmp_path}, dog/broken.wav: no such file: dog/broken.wav; fix the name or leave the row out",
        f"{tmp_path}, dog/link.wav: dog/link.wav leads out of the folder; move the file into it",
    ]


@pytest.mark.parametrize(
    ("tables", "column", "says"),
    [
        ([], "text", "no metadata.csv or metadata.jsonl in it (columns file_name, text); make one"),
        (["metadata.csv", "metadata.jsonl"], "text", "has metadata.csv and metadata.jsonl; keep one"),
    ],
)
def test_folders_that_are_refused(tables, column, says, folder):
    for name in tables:
        (folder / name).write_text("")
    with pytest.raises(UserError) as caught:
        [*read_folder(open_part(str(folder)), [column])]
    assert says in str(caught.value)
    assert str(folder) in str(caught.value)


def test_a_folder_with_neither_table_nor_classes(tmp_path):
    (tmp_path / "a.wav").write_text("sound")
    (tmp_path / ".git").mkdir()
    with pytest.raises(UserError, match="nor a folder of files for each label; make one"):
        [*read_folder(open_part(str(tmp_path)), ["label"])]


def test_a_folder_of_which_no_file_can_be_used(folder):
    (folder / "metadata.csv").write_text("file_name,text\nnone.wav,one\n")
    with pytest.raises(UserError, match=r"no usable row, the first is line 2: no such file: none.wav"):
        [*read_folder(open_part(str(folder)), ["text"])]


def test_a_table_without_the_column(folder):
    (folder / "metadata.csv").write_text("file_name,txt\na.wav,one\n")
    with pytest.raises(UserError, match=r"metadata\.csv.*no column 'text' among .*'txt'"):
        [*read_folder(open_part(str(folder)), ["text"])]


@pytest.mark.parametrize(("header", "column"), [("file_name,text", "labels"), ("file,labels", "file_name")])
def test_a_table_without_a_column_that_no_setting_names(folder, header: str, column: str):
    (folder / "metadata.csv").write_text(f"{header}\na.wav,one\n")
    with pytest.raises(
        UserError, match=rf"no column '{column}' among .*; (give|rename) the (table this )?column"
    ):
        [*read_folder(open_part(str(folder)), ["labels"])]


@pytest.mark.parametrize("location", CONTAINERS)
def test_what_is_in_many_folders_is_what_is_in_each(tmp_path: Path, location: str) -> None:
    names = ["a/2.png", "a/1.png", "a/.hidden", "a/b/c/3.png", "d/e.txt", "f.txt"]
    names += ["__MACOSX/a/1.png"] if location.endswith(".zip") else []
    listing = open_part(write_files(tmp_path / location, dict.fromkeys(names, b""))).listing
    shown = {
        "": ["a", "d", "f.txt"],
        "a": ["1.png", "2.png", "b"],
        "a/b": ["c"],
        "a/b/c": ["3.png"],
        "d": ["e.txt"],
    }
    for inside, expected in shown.items():
        below = listing.below(inside) if inside else listing
        assert [entry.name for entry in below.entries] == expected
        for entry in below.entries:
            path = below.file(entry.name)
            assert entry.is_folder == path.is_dir()
            assert entry.is_folder != path.is_file()
    assert [name for name in listing.walk() if "/" not in name] == ["f.txt"]
    assert sorted(listing.walk()) == ["a/1.png", "a/2.png", "a/b/c/3.png", "d/e.txt", "f.txt"]


@pytest.mark.parametrize("by", ["table", "class"])
def test_a_zip_is_gone_through_as_often_for_many_clips(
    tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called, counts = record_calls(monkeypatch, zipfile.Path, "iterdir"), set()
    for count in (4, 20):
        files = {
            f"{n}/more/{n}/{m}.png": encode_png(random_clip(n)[m]) for n in range(count) for m in range(2)
        }
        files |= {f"{n}/notes/read.txt": b"" for n in range(count)}
        rows = [(f"{n}/more/{n}", str(n)) for n in range(count)]
        if by == "table":
            files["metadata.csv"] = clip_table("label", rows)
        data = write_files(tmp_path / f"{count}.zip", files)
        called.clear()
        assert len([*CLIP_LABEL.read(open_part(data), CLIP_CONFIG, [])]) == count
        counts.add(len(called))
    assert len(counts) == 1
