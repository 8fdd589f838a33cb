"""Tagged sentences of every form, and what is wrong with those that can't be used."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from foveal.core.errors import UserError
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.text.conll import read_tagged

UNIVERSAL = """\
# sent_id = 1
# text = I can't go
1\tI\tI\tPRON\tPRP\tCase=Nom\t4\tnsubj\t_\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
2\tca\tcan\tAUX\tMD\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
3.1\tever\tever\tADV\tRB\t_\t_\t_\t_\t_
4\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_

# sent_id = 2
1\tNew York\tNew York\tPROPN\tNNP\t_\t0\troot\t_\t_

"""
WORDS = [["I", "ca", "n't", "go"], ["New York"]]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def sentences(path: Path, tags: str = "upos") -> list[tuple[list[str], list[str]] | str]:
    """Words and tags, or where and why a sentence is skipped."""
    return [
        (row.fields["tokens"], row.fields["tags"])
        if isinstance(row, Row)
        else f"{row.location}: {row.reason}".removeprefix(f"{path}, ")
        for row in read_tagged(path, tags)
    ]


def refusal(path: Path, tags: str = "upos") -> str:
    with pytest.raises(UserError) as caught:
        sentences(path, tags)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("upos", [["PRON", "AUX", "PART", "VERB"], ["PROPN"]]),
        ("xpos", [["PRP", "MD", "RB", "VB"], ["NNP"]]),
        ("deprel", [["nsubj", "aux", "advmod", "root"], ["root"]]),
        ("feats", [["Case=Nom", "_", "_", "_"], ["_"]]),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_universal(tags: str, expected: list[list[str]], ends: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.conllu", UNIVERSAL.replace("\n", ends))
    assert sentences(path, tags) == [*zip(WORDS, expected, strict=True)]


def test_the_place_of_a_sentence_is_its_first_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conllu", UNIVERSAL)
    assert [row.location for row in read_tagged(path)] == [f"{path}, line 1", f"{path}, line 10"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("\taux\t_\t_", "\taux\t_", "line 5: 9 columns where CoNLL-U has 10"),
        ("3\tn't", "5\tn't", "line 6: word number '5' where 3 is next"),
        ("AUX", "_", "line 5: 'ca' has no tag ('_' in column 4)"),
        ("AUX", "", "line 1: 'tags' is empty"),
        ("AUX", "A\0X", "line 1: 'tags' holds a NUL"),
        ("n't\tnot", "n't not", "line 6: 9 columns"),
    ],
)
def test_a_broken_sentence_is_skipped_alone(old: str, new: str, says: str, tmp_path: Path) -> None:
    found = sentences(write(tmp_path / "a.conllu", UNIVERSAL.replace(old, new)))
    assert len(found) == 2
    assert isinstance(found[0], str)
    assert found[0].startswith(says)
    assert found[1] == (["New York"], ["PROPN"])


def test_a_line_that_is_not_utf8_breaks_its_sentence_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conllu", UNIVERSAL.encode().replace(b"n't\tnot", b"n\xe9t\tnot"))
    first, second = sentences(path)
    assert str(first).startswith("line 6: not UTF-8 at byte 3")
    assert second == (["New York"], ["PROPN"])


def test_a_column_that_there_is_not(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conllu", UNIVERSAL)
    told = refusal(path, "xpoz")
    assert "no tags 'xpoz' in CoNLL-U; did you mean 'xpos'? (train with data.tags=NAME)" in told


PLAIN = """\
-DOCSTART- -X- O O

# id 7 domain=en
EU NNP I-NP B-ORG
rejects VBZ I-VP O

German\tJJ  I-NP\tB-MISC
10\u00a0000 CD I-NP O


"""


def test_plain(tmp_path: Path) -> None:
    found = sentences(write(tmp_path / "a.conll", PLAIN))
    assert found == [(["EU", "rejects"], ["B-ORG", "O"]), (["German", "10\u00a0000"], ["B-MISC", "O"])]


def test_a_hash_can_be_a_word(tmp_path: Path) -> None:
    found = sentences(write(tmp_path / "a.conll", "we O\n# O O\n\n# O\n1 B\n\na O\n# O\n"))
    assert found[1:] == [(["#", "1"], ["O", "B"]), (["a", "#"], ["O", "O"])]


@pytest.mark.parametrize(
    ("broken", "says"), [("rejects", "line 5: one column"), ("rejects O", "line 5: 2 columns")]
)
def test_a_broken_line_of_plain(broken: str, says: str, tmp_path: Path) -> None:
    content = PLAIN.replace("rejects VBZ I-VP O", broken)
    first, second = sentences(write(tmp_path / "a.conll", content))
    assert str(first).startswith(says)
    assert second == (["German", "10\u00a0000"], ["B-MISC", "O"])


ROWS = [
    {"tokens": ["a", "b"], "tags": ["X", "Y"]},
    {"tokens": ["a", "b"], "tags": [1, 2]},
    {"tokens": "a b", "tags": "X Y"},
]


def test_tables_of_lists(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", "\n".join(map(json.dumps, ROWS)))
    assert sentences(path) == [(["a", "b"], ["X", "Y"]), (["a", "b"], ["1", "2"]), (["a", "b"], ["X", "Y"])]
    pa.parquet.write_table(
        pa.table({"tokens": [["a", "b"], ["c"]], "ner": [[0, 1], [2]]}), tmp_path / "a.parquet"
    )
    assert sentences(tmp_path / "a.parquet", "ner") == [(["a", "b"], ["0", "1"]), (["c"], ["2"])]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"tokens": ["a", "b"], "tags": ["X"]}, "2 words but 1 tags"),
        ({"tokens": [], "tags": []}, "no words"),
        ({"tokens": ["a", " "], "tags": ["X", "Y"]}, "'tokens' is empty"),
        ({"tokens": ["a", None], "tags": ["X", "Y"]}, "'tokens' is null"),
        ({"tokens": ["a", ["b"]], "tags": ["X", "Y"]}, "'tokens' is list"),
        ({"tokens": ["a", "\ud800"], "tags": ["X", "Y"]}, "'tokens' holds half a surrogate pair"),
        ({"tokens": {"a": 1}, "tags": ["X"]}, "'tokens' is dict, not a list"),
        ({"tokens": ["a"], "tags": None}, "'tags' is null, not a list"),
        ({"tokens": ["a"]}, "no column 'tags'"),
    ],
)
def test_lists_that_cant_be_used(row: dict[str, object], says: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", f"{json.dumps(ROWS[0])}\n{json.dumps(row)}\n{json.dumps(ROWS[0])}\n")
    first, second, third = sentences(path)
    assert first == third == (["a", "b"], ["X", "Y"])
    assert str(second).startswith(f"line 2: {says}")


def test_what_is_no_tagged_text_is_refused(tmp_path: Path) -> None:
    assert "not a file of tagged sentences (.conllu, .conll, .jsonl" in refusal(
        write(tmp_path / "a.txt", "a O\n")
    )
    assert "no usable row; give rows" in refusal(write(tmp_path / "a.conllu", "# text = x\n\n"))
    assert "first is line 1: one column" in refusal(write(tmp_path / "a.conll", "a\nb\n"))


def test_english_web_treebank(outside_data: Path) -> None:
    """Held to a count of its comments, and of the lines that begin with a whole number."""
    path = outside_data / "ud_english_ewt_dev.conllu"
    lines = path.read_text().split("\n")
    rows = list(read_tagged(path))
    assert not [row for row in rows if isinstance(row, SkippedRow)]
    assert len(rows) == sum(line.startswith("# text = ") for line in lines)
    words = [line.split("\t")[1] for line in lines if line.split("\t")[0].isdecimal()]
    assert [word for row in rows if isinstance(row, Row) for word in row.fields["tokens"]] == words


def test_tags_need_not_be_there_where_they_are_asked_for(tmp_path: Path) -> None:
    """`_`, one column, or none: words alone."""
    untagged = UNIVERSAL.replace("AUX", "_")
    plain = "New\nYork\n\nIt\ncan\n"
    for name, content, count in (("a.conllu", untagged, 2), ("a.conll", plain, 2)):
        found = [*read_tagged(write(tmp_path / name, content), None)]
        assert len(found) == count
        assert all(isinstance(row, Row) and row.fields.keys() == {"tokens"} for row in found)
    table = write(tmp_path / "a.jsonl", '{"tokens": ["New", "York"]}\n{"tokens": "It can"}\n')
    assert [row.fields["tokens"] for row in read_tagged(table, None) if isinstance(row, Row)] == [
        ["New", "York"],
        ["It", "can"],
    ]
