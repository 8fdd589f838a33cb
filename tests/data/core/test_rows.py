"""A row that can't be used is skipped with its line and reason; no other row is lost or changed."""

import codecs
import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import combinations, groupby
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from foveal.core.errors import UserError
from foveal.data.core.compare_rows import count_overlap
from foveal.data.core.hash_split import split_of_text, split_rows
from foveal.data.core.row_table import ListedRows, RowTable, fill
from foveal.data.core.rows import Row, SkippedRow, text_key
from foveal.data.files.aligned import read_aligned
from foveal.data.files.tables import column_names, read_rows
from foveal.data.text.conll import read_tagged

COLUMNS = ("text", "label")
Text = tuple[str, str]


def found(path: Path) -> list[Text | str]:
    """Each row's texts, or where and why it is skipped."""
    return [
        (row.fields["text"], row.fields["label"])
        if isinstance(row, Row)
        else f"{row.location}: {row.reason}".removeprefix(f"{path}, ")
        for row in read_rows(path, COLUMNS)
    ]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        found(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


ROWS = [("plain", "a"), ('"quotes", commas', "b"), ("two\nlines\r\n", "a"), ("日本 \u2028 x", " b")]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".CSV"])
def test_rows_of_every_table(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows{suffix}"
    if suffix == ".jsonl":
        write(path, "\n".join(json.dumps({"label": label, "text": text}) for text, label in ROWS))
    elif suffix == ".parquet":
        texts, labels = zip(*ROWS, strict=True)
        pa.parquet.write_table(pa.table({"label": labels, "text": texts}), path)
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if suffix == ".tsv" else ",")
            writer.writerows([("label", "n", "text"), *((label, "1", text) for text, label in ROWS)])
    assert found(path) == ROWS
    assert {"text", "label"} <= {*column_names(path)}


def test_a_row_has_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", '\ufefftext,label\r\n"two\nlines",a\r\n\r\n\r\nb,b\r\n,\r\n\n\n')
    rows = list(read_rows(path, COLUMNS))
    assert rows[:2] == [
        Row(f"{path}, line 2", {"text": "two\nlines", "label": "a"}),
        Row(f"{path}, line 6", {"text": "b", "label": "b"}),
    ]
    assert [row.location for row in rows[2:]] == [f"{path}, line 7"]


@pytest.mark.parametrize(
    ("name", "damaged", "says"),
    [
        ("a.csv", b"one", "1 fields where the header has 2; fix the row"),
        ("a.csv", b"one,two,x", "3 fields where the header has 2; fix the row"),
        ("a.csv", b'"one,x', "quotes that don't close"),
        ("a.csv", b'"one"two,x', "quotes that don't close"),
        ("a.csv", b'one,"x', "quotes that don't close"),
        ("a.csv", b"caf\xe9,x", "not UTF-8 at byte 3 of the line"),
        ("a.csv", b"o\0ne,x", "'text' holds a NUL"),
        ("a.csv", b",x", "'text' is empty"),
        ("a.csv", b"one, \t", "'label' is empty"),
        ("a.csv", b"x" * (1 << 20) + b",a", "longer than 1,048,576 bytes"),
        ("a.tsv", b"one\ttwo\tx", "3 fields where the header has 2"),
        ("a.jsonl", b'{"text": "one", "label"', "not JSON"),
        ("a.jsonl", b'["one", "x"]', "a list without names of columns; a JSON object is needed"),
        ("a.jsonl", b'{"text": "one"}', "no column 'label'"),
        ("a.jsonl", b'{"text": null, "label": "x"}', "'text' is null, not text"),
        ("a.jsonl", b'{"text": ["one"], "label": "x"}', "'text' is list, not text"),
        ("a.jsonl", b'{"text": "one", "label": NaN}', "'label' is null, not text"),
        ("a.jsonl", b'{"text": "\\ud83d", "label": "x"}', "'text' holds half a surrogate pair"),
        ("a.jsonl", b'{"text": "\\u0000", "label": "x"}', "'text' holds a NUL"),
        ("a.jsonl", b'{"text": "one", "label": ""}', "'label' is empty"),
        ("a.jsonl", b"[" * 100_000, "not JSON"),
        ("a.jsonl", b'{"text": "' + b"x" * (1 << 20) + b'", "label": "x"}', "longer than 1,048,576 bytes"),
    ],
)
@pytest.mark.parametrize("last", [False, True])
def test_a_damaged_row_is_skipped_alone(
    name: str, damaged: bytes, says: str, last: bool, tmp_path: Path
) -> None:
    good = {"a.csv": b'"go, ""od""",x', "a.tsv": b"go\tx", "a.jsonl": b'{"text": "go", "label": "x"}'}[name]
    header = {"a.csv": [b"text,label"], "a.tsv": [b"text\tlabel"], "a.jsonl": []}[name]
    after = [] if last else [good, good]
    path = write(tmp_path / name, b"\n".join([*header, good, damaged, *after]))
    rows = found(path)
    line = len(header) + 2
    assert str(rows[1]).startswith(f"line {line}: {says}")
    texts = [row for i, row in enumerate(rows) if i != 1]
    assert texts == [('go, "od"' if name == "a.csv" else "go", "x")] * (1 + len(after))


def test_a_quote_that_never_closes_takes_no_more_than_its_row(tmp_path: Path) -> None:
    """Not even if another closes it, past the bytes of the longest row."""
    text = "plain " * 1000
    for count, last in ((10, "end,x"), (200, 'end",x')):
        rows = [(f"{i} {text}", "x") for i in range(count)]
        lines = ["text,label", '"open,x', *map(",".join, rows), last]
        first, *others = found(write(tmp_path / "a.csv", "\n".join(lines)))
        assert str(first).startswith("line 2: quotes that don't close")
        assert others == [*rows, (last.removesuffix(",x"), "x")]


def test_tabs_between_texts_that_nobody_quoted(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.tsv", 'text\tlabel\n"Go," he said.\tx\n"open\ta\nb\t"c"\nclosed"\td\n"q\tq"\tx\n'
    )
    assert found(path) == [
        ('"Go," he said.', "x"),
        ('"open', "a"),
        ("b", "c"),
        ('closed"', "d"),
        ("q\tq", "x"),
    ]


def test_numbers_are_labels_as_they_are_written(tmp_path: Path) -> None:
    labels = ["1", "-2", "0.5", "true", '"1"']
    path = write(tmp_path / "a.jsonl", "\n".join(f'{{"text": "x", "label": {label}}}' for label in labels))
    assert found(path) == [("x", label) for label in ["1", "-2", "0.5", "true", "1"]]
    pa.parquet.write_table(
        pa.table({"text": ["a", "b", None], "label": [3, None, 4]}), tmp_path / "a.parquet"
    )
    assert found(tmp_path / "a.parquet") == [
        ("a", "3"),
        "row 2: 'label' is null, not text; fix the row or leave it out",
        "row 3: 'text' is null, not text; fix the row or leave it out",
    ]


def test_parquet_text_that_is_not_utf8(tmp_path: Path) -> None:
    texts = pa.array([b"good", b"caf\xe9", b"good"]).view(pa.string())
    pa.parquet.write_table(pa.table({"text": texts, "label": ["x"] * 3}), tmp_path / "a.parquet")
    rows = found(tmp_path / "a.parquet")
    assert rows[0] == rows[2] == ("good", "x")
    assert str(rows[1]).startswith("row 2: not UTF-8 at byte 3")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", "texts,label\na,b\n", "no column 'text' among 'texts', 'label' (the first line)"),
        ("a.csv", "", "line 1: empty"),
        ("a.csv", "text,label\n\n", "no usable row; give rows"),
        ("a.csv", "text,label\n,a\nb\n", "no usable row, the first is line 2: 'text' is empty"),
        ("a.csv", '"text,label\na,b\n', "line 1: quotes that don't close"),
        ("a.csv", b"t\xe9xt,label\na,b\n", "line 1: not UTF-8 at byte 1"),
        ("a.jsonl", "\n \n", "no usable row; give rows"),
        ("a.jsonl", "{}", "the first is line 1: no column 'text'"),
        ("a.parquet", b"PAR1 not really", "not readable as Parquet"),
        ("a.txt", "a\n", "not a table with columns text, label (.jsonl, .json, .csv, .tsv, .parquet)"),
    ],
)
def test_what_concerns_the_whole_file_is_refused(
    name: str, content: str | bytes, says: str, tmp_path: Path
) -> None:
    assert says in refusal(write(tmp_path / name, content))


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    for suffix in (".csv", ".jsonl", ".parquet"):
        assert "can't read: No such file" in refusal(tmp_path / f"none{suffix}")


# Splits


def test_rows_of_equal_texts_fall_on_the_same_side() -> None:
    texts = [f"text  {i % 700} " for i in range(2000)] + [f" text {i}" for i in range(700)]
    rows = [Row(f"line {i}", {"label": str(i), "text": text}, text_key(text)) for i, text in enumerate(texts)]
    rows += [Row("words", {"tags": ["x", "x"], "tokens": ["text", f"{i}"]}, f"text {i}") for i in range(700)]
    shares = {"valid": 0.1, "test": 0.2}
    parts = {split: ListedRows() for split in ("train", "valid", "test")}
    for part, row in split_rows(rows, shares):
        parts[part].append(row)
    assert sum(map(len, parts.values())) == len(rows)
    for one, other in combinations(parts.values(), 2):
        assert count_overlap(one, other) == 0
    assert len(parts["test"]) == pytest.approx(0.2 * len(rows), rel=0.2)
    assert parts["valid"][0].fields["text"].split() == f"text {rows.index(parts['valid'][0]) % 700}".split()
    assert split_of_text("text 0", shares) == next(part for part, _ in split_rows(rows[:1], shares))
    with pytest.raises(UserError, match=r"data\.test_fraction=1\.0 leaves nothing"):
        list(split_rows(rows[:1], {"test": 1.0}))


def test_a_row_without_a_key_is_in_no_split() -> None:
    with pytest.raises(ValueError, match="line 1: without a key"):
        list(split_rows([Row("line 1", {"text": "a"})], {"test": 0.5}))


def test_overlap_counts_the_rows_that_were_trained_on() -> None:
    def rows(*texts: str) -> RowTable:
        return fill(ListedRows(), (Row("", {"text": text}, text_key(text)) for text in texts))

    train, test = rows("a b", "c", "c"), rows("a  b", "c", "c", "d")
    assert count_overlap(train, test) == 3
    assert count_overlap(test, train) == 3


# Damage of all kinds in 100,000 rows. Each form's lines are damaged here and there; what stands beside them
# has to come through with its own place, and the rows counted by simpler means have to be there.

SEED = 0
EACH = 20_000
TEXTS = ["a word", "naïve, really", "日本 \u2028", 'he said "go"', "x" * 60, "ends, with,commas,"]


def damage(line: bytes, rng: np.random.Generator, forbidden: bytes) -> bytes:
    """`line` with one thing wrong, or none: still one line, and not blank."""
    place = int(rng.integers(1, len(line)))
    kind = rng.integers(0, 8 if rng.random() < 0.99 else 9)
    if kind == 0:
        quotes = [i for i, byte in enumerate(line) if byte == 0x22]
        place = int(rng.choice(quotes)) if quotes else place
        return line[:place] + line[place + 1 :]
    if kind == 1:
        noise = bytes(set(rng.integers(0, 256, 3).astype(np.uint8).tobytes()) - {*forbidden})
        return line[:place] + noise + line[place:]
    return [
        line[:place],
        line[:place] + b"\0" + line[place:],
        line[:place] + codecs.BOM_UTF8 + line[place:],
        line + b"\r",
        line[:place] + b"\xe9" + line[place:],
        line[:place] + b",\t" + line[place:],
        line[:place] + b"x" * (1 << 20) + line[place:],
    ][kind - 2]


def damaged(lines: list[bytes], spared: set[int], forbidden: bytes = b"\n") -> tuple[bytes, set[int]]:
    """The file, and which lines were not touched. Every 7th is damaged, so that clean ones stand between."""
    rng = np.random.default_rng(SEED)
    hit = {*range(3, len(lines), 7)} - spared
    content = b"\n".join(damage(line, rng, forbidden) if i in hit else line for i, line in enumerate(lines))
    return codecs.BOM_UTF8 + content + b"\n", {*range(len(lines))} - hit


def texts() -> Iterator[Text]:
    for i in range(EACH):
        yield f"{i} {TEXTS[i % len(TEXTS)]}", f"{TEXTS[i % 5]} {i}"


def check(rows: list[Row | SkippedRow], clean: Mapping[str, object], count: int) -> None:
    places = [row.location.rpartition(", ")[2] for row in rows]
    assert len(places) == len(set(places)) == count
    by_place = dict(zip(places, rows, strict=True))
    for place, expected in clean.items():
        row = by_place[place]
        assert isinstance(row, Row), row
        assert row.fields == expected
    skipped = [row for row in rows if isinstance(row, SkippedRow)]
    assert len(skipped) > 0.05 * count
    assert all(row.reason and "\n" not in row.reason for row in skipped)


def as_csv(row: Text, separator: str, quoting: Literal[0, 1, 2, 3]) -> bytes:
    file = io.StringIO()
    csv.writer(file, delimiter=separator, quoting=quoting, lineterminator="").writerow(row)
    return file.getvalue().encode()


def plain_row(row: Text, separator: str) -> Text:
    """Without what needs quotes."""
    return row[0].replace(separator, ";").replace('"', "'"), row[1].replace(separator, ";").replace('"', "'")


@pytest.mark.parametrize(("name", "separator"), [("a.csv", ","), ("a.tsv", "\t")])
@pytest.mark.parametrize("quoted", [True, False])
def test_damaged_csv(name: str, separator: str, quoted: bool, tmp_path: Path) -> None:
    if quoted:
        # Some rows are of two lines; those are left alone, so that every damaged line is a row.
        rows = [(a + "\n" + b, b) if i % 11 == 0 else (a, b) for i, (a, b) in enumerate(texts())]
        lines = [as_csv(row, separator, csv.QUOTE_ALL) for row in rows]
    else:
        rows = [plain_row(row, separator) for row in texts()]
        lines = [separator.join(row).encode() for row in rows]
    rows, lines = rows[: EACH // 2], lines[: EACH // 2]
    several = {i for i, line in enumerate(lines) if b"\n" in line}
    content, clean = damaged(lines, several, b"\n" if quoted else b'\n"')
    path = write(
        tmp_path / name, separator.join(COLUMNS).encode() + b"\n" + content.removeprefix(codecs.BOM_UTF8)
    )
    numbers = np.cumsum([2, *(line.count(b"\n") + 1 for line in lines)])
    expected = {f"line {numbers[i]}": dict(zip(COLUMNS, rows[i], strict=True)) for i in clean}
    check(list(read_rows(path, COLUMNS)), expected, len(lines))


def test_damaged_jsonl(tmp_path: Path) -> None:
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in texts()]
    lines = [json.dumps(row, ensure_ascii=bool(i % 2)).encode() for i, row in enumerate(rows)]
    content, clean = damaged(lines, set())
    path = write(tmp_path / "a.jsonl", content)
    check(list(read_rows(path, COLUMNS)), {f"line {i + 1}": rows[i] for i in clean}, EACH)


def test_damaged_aligned(tmp_path: Path) -> None:
    rows = list(texts())
    sources, targets = ([text.encode() for text in side] for side in zip(*rows, strict=True))
    content, clean = damaged(sources, set())
    other, clean_too = damaged(targets, {*range(0, EACH, 2)})
    source, target = write(tmp_path / "a", content), write(tmp_path / "b.gz", gzip.compress(other, 1))
    expected = {f"line {i + 1}": dict(zip(COLUMNS, rows[i], strict=True)) for i in clean & clean_too}
    check(list(read_aligned(source, target, COLUMNS)), expected, EACH)


@pytest.mark.parametrize("name", ["a.conll", "a.conllu"])
def test_damaged_sentences(name: str, tmp_path: Path) -> None:
    lines: list[bytes] = []
    expected: dict[int, object] = {}
    for i in range(EACH // 2):
        words, tags = [f"w{i}", "日本", "end"][: 1 + i % 3], ["A", "B", "C"][: 1 + i % 3]
        expected[len(lines)] = {"tokens": words, "tags": tags}
        for k, (word, tag) in enumerate(zip(words, tags, strict=True), 1):
            columns = [str(k), word, "_", tag, *"______"] if name == "a.conllu" else [word, "_", tag]
            lines.append("\t".join(columns).encode())
        lines.append(b"")
    content, clean = damaged(lines, {i for i, line in enumerate(lines) if not line})
    path = write(tmp_path / name, content)
    whole = {
        f"line {first + 1}": fields
        for first, fields in expected.items()
        if clean >= {*range(first, first + len(fields["tokens"]))}  # type: ignore[index]
    }
    blocks = [blank for blank, _ in groupby(content.split(b"\n"), key=lambda line: not line.strip())]
    check(list(read_tagged(path)), whole, blocks.count(False))


READERS: dict[str, Callable[[Path], Iterator[Row | SkippedRow]]] = {
    "a.csv": lambda path: read_rows(path, COLUMNS),
    "a.tsv": lambda path: read_rows(path, COLUMNS),
    "a.jsonl": lambda path: read_rows(path, COLUMNS),
    "a.parquet": lambda path: read_rows(path, COLUMNS),
    "a.gz": lambda path: read_aligned(path, path, COLUMNS),
    "a.conll": read_tagged,
    "a.conllu": read_tagged,
}


@pytest.mark.parametrize("name", READERS)
def test_files_with_bytes_changed_anywhere_give_rows_or_a_plain_error(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED)
    rows = list(texts())[:30]
    table = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table(dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))), table)
    whole = {
        "a.csv": b"text,label\n" + b"\n".join(as_csv(row, ",", csv.QUOTE_MINIMAL) for row in rows),
        "a.tsv": b"text\tlabel\n" + b"\n".join(as_csv(row, "\t", csv.QUOTE_MINIMAL) for row in rows),
        "a.jsonl": b"\n".join(json.dumps(dict(zip(COLUMNS, row, strict=True))).encode() for row in rows),
        "a.parquet": table.getvalue().to_pybytes(),
        "a.gz": gzip.compress("\n".join(text for text, _ in rows).encode()),
        "a.conll": b"word X\nword Y\n\n" * 30,
        "a.conllu": b"1\tword\t_\tX\t_\t_\t_\t_\t_\t_\n\n" * 30,
    }[name]
    for _ in range(60):
        content = bytearray(whole)
        for place in rng.integers(0, len(content), rng.integers(1, 6)):
            content[place] = rng.integers(0, 256)
        path = write(tmp_path / name, bytes(content[: rng.integers(1, 2 * len(content))]))
        with suppress(UserError):
            assert list(READERS[name](path))
