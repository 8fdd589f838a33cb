"""Every kind of file is read lazily and exactly; every bad one is refused with its place and its cure."""

import codecs
import csv
import json
import os
import random
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveal.core.errors import UserError
from foveal.data.files import utf8 as module
from foveal.data.files.data_part import open_part
from foveal.data.files.tables import read_table
from foveal.data.files.utf8 import read_text
from foveal.data.text.corpus import TextFolder, open_text_source


def texts(path: Path, column: str = "text") -> list[str]:
    return [
        "".join(document.pieces) for document in open_text_source(open_part(str(path)), column).documents()
    ]


def refusal(path: Path, column: str = "text") -> str:
    with pytest.raises(UserError) as caught:
        texts(path, column)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


# Text files


@given(
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
    block=st.integers(1, 9),
)
def test_pieces_join_to_the_file_whatever_the_block(
    text: str, block: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("text") / "a.txt"
    path.write_bytes(text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_BYTES", block)
        assert "".join(read_text(path)) == text.removeprefix("\ufeff")


def test_pieces_end_at_line_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_BYTES", 8)
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\nfour\n")
    assert [*read_text(tmp_path / "a.txt")] == ["one\ntwo\n", "three\n", "four\n"]


def test_line_ends_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("one\r\ntwo\rthree\u2028four\n".encode())
    assert texts(tmp_path / "a.txt") == ["one\r\ntwo\rthree\u2028four\n"]


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(codecs.BOM_UTF8 + b"hello")
    assert texts(tmp_path / "a.txt") == ["hello"]


@pytest.mark.parametrize("line", [b"a line of text\n", b"one line that never ends "])
def test_a_big_file_needs_little_memory(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "big.txt"
    with path.open("wb") as file:
        for _ in range(50):
            file.write(line * (1_048_576 // len(line)))
    tracemalloc.start()
    length = sum(len(piece) for piece in read_text(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert length == path.stat().st_size
    assert peak < 10 * 1_048_576


def test_missing_empty_and_special(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "none.txt")
    (tmp_path / "empty.txt").touch()
    assert "empty" in refusal(tmp_path / "empty.txt")
    os.mkfifo(tmp_path / "pipe")
    assert "neither a file nor a folder" in refusal(tmp_path / "pipe")


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    (tmp_path / "a.txt").write_text("hello")
    monkeypatch.setattr(Path, "open", refuse)
    assert "can't read: Permission denied" in refusal(tmp_path / "a.txt")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_named_with_its_cure(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("hello world\n".encode(encoding) * 9)
    assert "UTF-16; convert with: iconv" in refusal(tmp_path / "a.txt")


def test_binary_names_the_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_BYTES", 4)
    (tmp_path / "a.bin").write_bytes(b"abcd\nefg\0")
    assert "binary, not text (NUL at byte 8)" in refusal(tmp_path / "a.bin")


def test_truncated_utf8_names_the_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_BYTES", 4)
    (tmp_path / "a.txt").write_bytes("abcdef\nab🙂".encode()[:-1])
    assert "cut off in the middle of a character at byte 9" in refusal(tmp_path / "a.txt")


@pytest.mark.parametrize("block", [2, 3, 4, 1024])
def test_latin1_names_the_byte_and_the_cure(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK_BYTES", block)
    (tmp_path / "a.txt").write_bytes("abc\ncafé au lait".encode("latin-1"))
    error = refusal(tmp_path / "a.txt")
    assert "not UTF-8 at byte 7; if it is Latin-1" in error
    assert "convert with: iconv -f CP1252 -t UTF-8 OLD > NEW" in error


# Folders


def test_a_folder_is_read_in_order_without_what_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "a.txt").write_text("hidden")
    (tmp_path / ".secret.txt").write_text("hidden")
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / "sub" / "a.md").write_text("sub a")
    (tmp_path / "a.py").write_text("a")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "image.png").write_bytes(b"\x89PNG\0\0")
    (tmp_path / "old.txt").write_bytes(b"caf\xe9 au lait")
    source = open_text_source(open_part(str(tmp_path)), "text")
    assert isinstance(source, TextFolder)
    assert ["".join(document.pieces) for document in source.documents()] == ["a", "b", "sub a"]
    assert [why.split(":")[0] for why in source.skipped] == [
        str(tmp_path / "image.png"),
        str(tmp_path / "old.txt"),
    ]


def test_a_folder_with_no_text(tmp_path: Path) -> None:
    assert "a folder with no text in it" in refusal(tmp_path)
    (tmp_path / "image.png").write_bytes(b"\x89PNG\0\0")
    message = refusal(tmp_path)
    assert "1 file(s) in it are not text" in message
    assert "image.png" in message


# Tables

ROWS = [
    "plain",
    'with "quotes", commas',
    "two\nlines\r\n",
    "",
    "tab\there",
    "naïve 日本 \u2028 x",
    " spaced ",
]


def write(path: Path, rows: list[str]) -> None:
    if path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps({"id": 1, "text": row}) for row in rows))
    elif path.suffix == ".parquet":
        pa.parquet.write_table(pa.table({"id": [1] * len(rows), "text": rows}), path, row_group_size=3)
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writerows([["id", "text"], *(["1", row] for row in rows)])


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv", ".parquet", ".CSV"])
def test_every_table_gives_its_texts(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{suffix}"
    write(path, ROWS)
    assert texts(path) == ROWS


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_a_byte_order_mark_before_a_table_is_dropped(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{suffix}"
    write(path, ROWS)
    path.write_bytes(codecs.BOM_UTF8 + path.read_bytes())
    assert texts(path) == ROWS


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_a_long_text_and_a_long_table(suffix: str, tmp_path: Path) -> None:
    rows = ["x" * 300_000] + [f"row {random.Random(i).random()}" for i in range(3000)]
    path = tmp_path / f"rows{suffix}"
    write(path, rows)
    assert texts(path) == rows


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv", ".parquet"])
def test_a_missing_column_is_named_with_those_there_are(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{suffix}"
    write(path, ROWS)
    for words in ("no column 'texts' among ", "'text'", "set data.text=NAME"):
        assert words in refusal(path, "texts")


def test_many_columns_with_long_names_are_not_all_told(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(f"{number} {'x' * 99}" for number in range(500)) + "\n")
    told = refusal(path, "text")
    assert "'3 xxx" in told
    assert len(told) < 1500


@pytest.mark.parametrize("mark", [";", "\t"])
def test_what_separates_a_csv_is_seen_in_its_header(mark: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter=mark).writerows([["id", "text"], [1, "one, two; three"], [2, "a,b"]])
    assert texts(path) == ["one, two; three", "a,b"]
    path.write_text("text\none; two\n")  # a single column
    assert texts(path) == ["one; two"]


def test_the_line_of_a_csv_row_is_right_after_rows_of_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('id,text\n1,"two\nlines"\n\n2,b\n')
    assert [*read_table(path, "text")] == [("line 2", "two\nlines"), ("line 5", "b")]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", b'{"text": "a"}\n{"text": \n', "line 2: not JSON"),
        (
            "a.jsonl",
            b'{"text": "a"}\n\n["text"]\n',
            "line 3: a list without names of columns; a JSON object is needed",
        ),
        (
            "a.jsonl",
            b'{"text": "a"}\n{"txt": "b"}',
            "line 2: no column 'text' among 'txt'; is it 'txt'? Else give the table this column, or set",
        ),
        ("a.jsonl", b'{"text": "a"}\n{"text": 3}', "line 2: 'text' is int, not text"),
        ("a.jsonl", b'{"text": null}', "line 1: 'text' is null, not text"),
        ("a.jsonl", b'{"text": "a\\u0000b"}', "line 1: 'text' holds a NUL"),
        ("a.jsonl", b'{"text": "a\\ud800b"}', "line 1: 'text' holds half a surrogate pair"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "caf\xe9"}', "line 2: not UTF-8 at byte 13"),
        ("a.jsonl", b"[" * 100_000, "line 1: not JSON"),
        ("a.jsonl", b'{"n": ' + b"9" * 5000 + b"}", "line 1: not JSON"),
        ("a.csv", b"id,text\n1,a\n1,a,b\n", "line 3: 3 fields where the header has 2"),
        ("a.csv", b"id,text\n1,a\n\n1\n", "line 4: 1 fields where the header has 2"),
        ("a.csv", b"id,text\n1,a\x00b\n", "line 2: 'text' holds a NUL"),
        ("a.csv", b'id,text\n1,"a"b\n', "line 2: "),
        ("a.csv", b'id,text\n1,"a\nb\n', "line 2: quotes that don't close (unexpected end of data)"),
        ("a.tsv", b"id\ttext\n1\tcaf\xe9\n", "line 2: not UTF-8 at byte 5"),
        ("a.parquet", b"PAR1 not really", "not readable as Parquet"),
    ],
)
def test_a_bad_row_is_named(name: str, content: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert says in refusal(tmp_path / name)


def test_bad_rows_of_parquet_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(pa.table({"text": ["a", None]}), path)
    assert "row 2: 'text' is null" in refusal(path)
    pa.parquet.write_table(pa.table({"text": [1]}), path)
    assert "row 1: 'text' is int" in refusal(path)
    write(path, ROWS * 50)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert "not readable as Parquet" in refusal(path)
