"""Tables that look like others: names of columns that repeat, and JSON of every shape."""

import json
import re
import shlex
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from foveal.core.errors import UserError
from foveal.data.core.fields import as_words, split_words
from foveal.data.core.rows import SkippedRow
from foveal.data.files import json_rows
from foveal.data.files.tables import column_names, read_rows
from foveal.data.open import open_path
from foveal.tasks.infer import infer_task

ROWS = [{"text": "one", "label": "a"}, {"text": "two", "label": "b"}]


def read(path: Path) -> list[object]:
    assert column_names(path) == ["text", "label"]
    return [row.fields for row in read_rows(path, ["text", "label"])]  # type: ignore[union-attr]


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as error:
        read(path)
    return str(error.value)


def write_table(path: Path, columns: list[str]) -> None:
    if path.suffix == ".parquet":
        table = pyarrow.table([["x"]] * len(columns), names=columns)
        pyarrow.parquet.write_table(table, path)
    elif path.suffix.startswith(".json"):
        path.write_text("{" + ", ".join(f'"{column}": "x"' for column in columns) + "}\n")
    else:
        separator = "\t" if path.suffix == ".tsv" else ","
        path.write_text(separator.join(columns) + "\n" + separator.join("x" * len(columns)) + "\n")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl", ".json"])
def test_two_columns_of_one_name_are_refused(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    write_table(path, ["text", "label", "text"])
    where = (
        "the key 'text' is there twice" if "json" in suffix else "the columns 1 and 3 are both named 'text'"
    )
    assert where in refusal(path)


def test_columns_without_names_may_be_several_and_spaces_around_names_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text, label,,\none,a,,\ntwo,b,,\n")
    assert column_names(tmp_path / "a.csv") == ["text", "label", "", ""]
    assert [row.fields for row in read_rows(tmp_path / "a.csv", ["text", "label"])] == ROWS  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "value",
    [
        ROWS,
        {"data": ROWS},
        {"version": 1, "data": ROWS},
        {"text": ["one", "two"], "label": ["a", "b"]},
        {"text": {"0": "one", "1": "two"}, "label": {"0": "a", "1": "b"}},
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_json_of_rows_and_of_columns(value: object, indent: int | None, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value, indent=indent))
    assert read(path) == ROWS


def test_json_objects_of_several_lines_one_after_another(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("\n".join(json.dumps(row, indent=2) for row in ROWS))
    assert read(path) == ROWS
    path = path.rename(tmp_path / "a.jsonl")
    assert "line 1: the start of JSON of several lines; write an object a line" in refusal(path)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "an empty list; give objects"),
        ([1, 2, 3], "object 1: int, not a row; a JSON object is needed"),
        ([["one", "a"]], "object 1: a list without names of columns; a JSON object is needed"),
        ({"train": ROWS, "test": ROWS}, "2 lists of rows (train, test); write each to a file of its own"),
        ({"text": ["one"], "label": ["a", "b"]}, "columns of different lengths (1 in 'text', 2 in 'label')"),
        ({f"text {number}": "a" for number in range(30)}, "a JSON object of 30 keys, not rows"),
        ({"a": {"text": "one"}, "b": {"text": "two"}}, "a JSON object of 2 keys, not rows"),
        ("text", "JSON without rows"),
    ],
)
def test_json_without_rows_is_refused(value: object, words: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value))
    assert words in refusal(path)


def test_a_tagged_sentence_is_a_row_and_no_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"tokens": ["a", "cat"], "tags": ["DET", "NOUN"]}))
    assert column_names(path) == ["tokens", "tags"]


@pytest.mark.parametrize(
    "printed",
    ["[1 2 3 ... 998 999]", "['a' 'b' ...\n 'y' 'z']", "[1, 2, 3, ..., 999]", "['a', ..., 'z']"],
)
def test_a_list_that_was_shortened_when_printed_is_refused(printed: str) -> None:
    assert isinstance(reason := split_words(printed), str)
    assert "was shortened with '...'" in reason
    assert as_words({"words": printed}) == f"'words' {reason}"


@pytest.mark.parametrize(
    ("text", "words"),
    [("['so' '...' 'then']", ["so", "...", "then"]), ("['so', '...']", ["so", "..."]), ("[...]", ["..."])],
)
def test_three_dots_may_be_a_word(text: str, words: list[str]) -> None:
    assert split_words(text) == words


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_a_column_that_the_first_row_lacks_is_known(suffix: str, tmp_path: Path) -> None:
    rows = [{"text": "none"}, 7, *({"text": f"a {number}", "label": number % 2} for number in range(20))]
    lines = [*map(json.dumps, rows)]
    path = tmp_path / f"a{suffix}"
    path.write_text("\n".join(lines) if suffix == ".jsonl" else f"[{','.join(lines)}]")
    opened = open_path(str(path))
    assert opened.train.columns == ("text", "label")
    assert infer_task(opened, {}).name == "text-classification"
    read = [*read_rows(path, ["text", "label"])]
    reasons = [row.reason for row in read if isinstance(row, SkippedRow)]
    assert reasons[0].startswith("no column 'label'")
    assert len(read) == 22


ODD = "it's $(touch hit) a b"


@pytest.mark.parametrize(
    ("name", "content", "bound"),
    [
        (f"{ODD}.json", json.dumps({ODD: [{"text": "a"}], 'the "other"': [{"text": "b"}]}), 0),
        (f"{ODD}.json", json.dumps({"images": [], "annotations": [{"caption": "a"}]}), 0),
        (f"{ODD}.json", json.dumps([{"text": "a" * 99}]), 50),
        (f"{ODD}.txt", "__label__a so it is\n__label__b so it was\n" * 9, 0),
    ],
)
def test_names_in_commands_are_quoted(
    name: str, content: str, bound: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell reads each name as one word, and runs nothing in it."""
    if bound:
        monkeypatch.setattr(json_rows, "MAX_JSON_BYTES", bound)
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(UserError) as error:
        infer_task(open_path(str(path)), {})
    command = re.search(r"(jq|sed -E) .*", str(error.value))
    assert command
    words = shlex.split(command[0].partition(". To learn")[0])
    assert any(word in (str(path), path.name) for word in words)
    assert words[-2] == ">"
    assert words[-1].rpartition(".")[0] in (ODD, "metadata")
