"""Aligned files are paired line by line; what can't be used is skipped with its line."""

import gzip
import re
from pathlib import Path

import pytest

from foveal.core.errors import UserError
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.files.aligned import check_same_order, read_aligned, read_lines

COLUMNS = ("source", "target")


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def pairs(source: Path, target: Path) -> list[tuple[str, str] | str]:
    """The pairs, and the reasons of those skipped."""
    return [
        (row.fields["source"], row.fields["target"]) if isinstance(row, Row) else row.reason
        for row in read_aligned(source, target, COLUMNS)
    ]


def refusal(source: Path, target: Path) -> str:
    with pytest.raises(UserError) as caught:
        pairs(source, target)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_line_i_belongs_to_line_i(suffix: str, tmp_path: Path) -> None:
    source = write(tmp_path / f"a.en{suffix}", "\ufeffone\u2028more\r\ntwo\x0b \n".encode())
    target = write(tmp_path / f"a.de{suffix}", b"eins\rmehr\n zwei")
    rows = list(read_aligned(source, target, COLUMNS))
    assert rows == [
        Row(f"{source},{target}, line 1", {"source": "one\u2028more", "target": "eins\rmehr"}),
        Row(f"{source},{target}, line 2", {"source": "two\x0b ", "target": " zwei"}),
    ]


def test_lines_that_cant_be_used_are_skipped(tmp_path: Path) -> None:
    source = write(tmp_path / "a", b"one\n \nthree\ncaf\xe9\nfive\0\n" + b"x" * (1 << 20) + b"\nseven\n")
    target = write(tmp_path / "b", b"1\n2\n\n4\n5\n6\n7\n")
    rows = list(read_aligned(source, target, COLUMNS))
    assert [row.location.rpartition(" ")[2] for row in rows] == list("1234567")
    found = pairs(source, target)
    assert found[0] == ("one", "1")
    assert found[-1] == ("seven", "7")
    for why, says in zip(
        found[1:-1],
        ["'source' is empty", "'target' is empty", "not UTF-8 at byte 3", "a NUL", "longer than 1,048,576"],
        strict=True,
    ):
        assert isinstance(why, str)
        assert says in why


@pytest.mark.parametrize(("one", "other"), [(3, 5), (5, 3), (0, 2)])
def test_unequal_files_are_refused_with_both_counts(one: int, other: int, tmp_path: Path) -> None:
    source, target = write(tmp_path / "a", b"x\n" * one), write(tmp_path / "b.gz", b"y\n" * other)
    assert f"{source} has {one} lines and {target} has {other}" in refusal(source, target)


def test_nothing_to_use_is_refused(tmp_path: Path) -> None:
    source, target = write(tmp_path / "a", b""), write(tmp_path / "b", b"")
    assert refusal(source, target).endswith("no usable row; give rows")
    source, target = (
        write(tmp_path / "a", "étude\nö\nä\n".encode("latin1")),
        write(tmp_path / "b", b"1\n2\n3\n"),
    )
    assert "the first is line 1: not UTF-8 at byte 0 of the line; name its encoding: " in refusal(
        source, target
    )
    assert "can't read: No such file" in refusal(source, tmp_path / "none")


@pytest.mark.parametrize("damage", ["cut", "changed", "not gzip", "only the head"])
def test_a_damaged_gz_is_refused_by_its_name(damage: str, tmp_path: Path) -> None:
    lines = b"".join(b"line %d\n" % (i * i) for i in range(9999))
    source, target = write(tmp_path / "a", lines), write(tmp_path / "b.gz", lines)
    content = target.read_bytes()
    target.write_bytes(
        {
            "cut": content[:-9],
            "changed": content[:9000] + bytes(byte ^ 255 for byte in content[9000:9100]) + content[9100:],
            "not gzip": lines,
            "only the head": content[:10],
        }[damage]
    )
    assert refusal(source, target).startswith(f"{target}: damaged, not a whole .gz")


def test_multi30k(outside_data: Path) -> None:
    """29,000 pairs (Elliott et al. 2016)."""
    folder = outside_data / "multi30k"
    rows = list(read_aligned(folder / "train.en.gz", folder / "train.de.gz", COLUMNS))
    assert len(rows) == 29_000
    assert not any(isinstance(row, SkippedRow) for row in rows)


def test_packed_bytes_are_not_taken_for_old_line_ends(tmp_path: Path) -> None:
    """The bytes of some small `.gz` include a carriage return and no line feed."""
    for number in range(200):
        packed = gzip.compress(f"text {number}\n".encode(), mtime=0)
        if b"\r" in packed[:-1] and b"\n" not in packed:
            break
    path = tmp_path / "a.gz"
    path.write_bytes(packed)
    assert [line.text for line in read_lines(path)] == [f"text {number}\n"]


@pytest.mark.parametrize(
    ("train", "other", "is_swapped"),
    [
        ("train.de,train.en", "val.en,val.de", True),
        ("train.de.gz,train.en.gz", "b/newstest.de-en.en,b/newstest.de-en.de", True),
        ("train_de.txt,train_en.txt", "test_en.txt,test_de.txt", True),
        ("train.de,train.en", "val.de,val.en", False),
        ("train.de,train.en", "val.src,val.tgt", False),
        ("de.txt,train.txt", "train2.txt,de2.txt", False),
    ],
)
def test_files_in_the_other_order_are_refused(train: str, other: str, is_swapped: bool) -> None:
    pairs = [(Path(names.split(",")[0]), Path(names.split(",")[1])) for names in (train, other)]
    if not is_swapped:
        check_same_order(*pairs)
        return
    with pytest.raises(UserError) as caught:
        check_same_order(*pairs)
    assert str(caught.value).endswith(f"write {pairs[1][1]},{pairs[1][0]}")


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a picture"),
        (b"BM6\x03\0\0\0\0\0\x006\0\0\0", "a picture"),
        (b"RIFF$\0\0\0WAVEfmt ", "a recording"),
        (b"PK\3\4\x14\0\0\0", "a zip or .npz"),
        (b"PAR1\x15\0", "a Parquet table"),
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj", "a PDF"),
        ("BMW fährt\nGIF8\nso".encode("latin-1"), ""),
        (b"GIF89a is a format\n", ""),
        ("€ one\n".encode("cp1252"), ""),
        ("one\n".encode("utf-16"), ""),
    ],
)
def test_files_that_are_no_text_are_refused(start: bytes, kind: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.dat", start)
    if not kind:
        assert [*read_lines(path)]
        return
    with pytest.raises(UserError, match=f"{re.escape(str(path))}: {kind}, and text is read here"):
        next(read_lines(path))
