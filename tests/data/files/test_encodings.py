"""Texts in other encodings than UTF-8: what an error says about them, and which are read."""

from pathlib import Path

import pytest

from foveal.core.errors import UserError
from foveal.data.files.encodings import encoding_hint, iconv_hint, likely_encodings
from foveal.data.files.tables import column_names, read_rows
from foveal.data.files.text_files import read_text_file
from foveal.data.files.utf8 import read_text

TEXTS = {
    "cp1252": "Le café était fermé à midi, señor Müller",
    "cp1250": "Zażółć gęślą jaźń, příliš žluťoučký kůň",
    "cp1251": "Это очень хороший фильм, и мне понравилась игра актёров",
    "koi8_r": "Это очень хороший фильм, привет",
    "cp1253": "Καλημέρα, τι κάνεις σήμερα",
    "cp1255": "שלום, מה שלומך היום",
    "cp1256": "مرحبا كيف حالك اليوم",
    "cp874": "สวัสดีครับ หนังเรื่องนี้ดีมาก",
    "shift_jis": "cat dog 日本語",
    "euc_jp": "この映画はとても面白かったです",
    "gb18030": "我不喜欢这个产品，质量太差了",
    "big5": "我不喜歡這個產品，質量太差了",
    "euc_kr": "이 영화는 정말 재미있어요",
}


@pytest.mark.parametrize("encoding", TEXTS)
def test_an_encoding_is_named_where_there_is_evidence(encoding: str) -> None:
    data = f"{TEXTS[encoding]},pos\n".encode(encoding)
    assert encoding_hint(data).endswith(f"data.encoding={encoding}")
    assert f"iconv -f {encoding.upper().replace('_', '-')} -t UTF-8" in iconv_hint(data)


@pytest.mark.parametrize(
    ("data", "candidates"),
    [("naïve".encode("cp1252"), {"cp1252", "cp1250"}), ("中文".encode("gbk"), {"gb18030", "koi8_r"})],
)
def test_candidates_are_listed_where_there_is_little_evidence(data: bytes, candidates: set[str]) -> None:
    assert candidates <= {*likely_encodings(data)}
    assert all(data.decode(encoding) for encoding in likely_encodings(data))
    assert all(encoding in encoding_hint(data) for encoding in candidates)


def test_any_bytes_have_an_encoding() -> None:
    assert likely_encodings(bytes(range(256)))


ROWS = [{"text": f"the cat number {number} — ü", "label": "ab"[number % 2]} for number in range(2000)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".json"])
def test_tables_are_read_whatever_their_line_ends(
    suffix: str, end: str, encoding: str, tmp_path: Path
) -> None:
    separator = "\t" if suffix == ".tsv" else ","
    lines = [f"text{separator}label", *(separator.join(row.values()) for row in ROWS)]
    if suffix.startswith(".json"):
        lines = [f'{{"text": "{row["text"]}", "label": "{row["label"]}"}}' for row in ROWS]
    path = tmp_path / f"a{suffix}"
    path.write_bytes((end.join(lines) + end).encode(encoding))
    assert column_names(path) == ["text", "label"]
    assert [row.fields for row in read_rows(path, ["text", "label"])] == ROWS  # type: ignore[union-attr]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_texts_of_utf16_without_a_byte_order_mark(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("some text — here".encode(encoding))
    assert read_text_file(path).text == "some text — here"
    with pytest.raises(
        UserError, match=f"UTF-16; convert with: iconv -f {encoding.upper().replace('16-', '16')} "
    ):
        list(read_text(path))
