"""`foveal predict`: answers that line up with the rows of the data, in every format, from files and pipes."""

import csv
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from foveal.data.core.rows import Row
from foveal.data.files.tables import read_rows
from tests.support.command_line import refuse, succeed, table_rows
from tests.support.small_texts import SMALL, TAGS, write_labels, write_tags

LABELS = ("gut", "schlécht")
OTHER_NAMES = "review,mood,stars\nthe red cat,gut,3\n"


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A folder with a run that labels texts, and a run that tags words; not to be changed."""
    folder = tmp_path_factory.mktemp("learned")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOVEAL_CACHE", str(cache))
        patch.chdir(folder)
        write_labels()
        text = Path("labels.csv").read_text().replace(",cat\n", f",{LABELS[0]}\n")
        Path("labels.csv").write_text(text.replace(",none\n", f",{LABELS[1]}\n"))
        write_tags()
        succeed("train", "labels.csv", *SMALL, "--budget", "3steps", "--run", "labels")
        succeed("train", "tags.conllu", *TAGS, "--budget", "3steps", "--run", "tags")
    return folder


@pytest.fixture(autouse=True)
def runs(learned: Path, here: Path) -> None:
    for name in ("labels", "tags"):
        shutil.copytree(learned / name, here / name)


def write_table(path: str = "table.csv") -> None:
    Path(path).write_text('id,text,note\n1,the red cat,"a, ""b"""\n2\n3,the dog,\n')


def read_csv(path: str) -> list[dict[str, Any]]:
    with Path(path).open(newline="", encoding="utf-8") as file:
        return [{name: value or None for name, value in row.items()} for row in csv.DictReader(file)]


def read_jsonl(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def read_parquet(path: str) -> list[dict[str, Any]]:
    return pyarrow.parquet.read_table(path).to_pylist()


Reader = Callable[[str], list[dict[str, Any]]]
READERS: dict[str, Reader] = {".csv": read_csv, ".jsonl": read_jsonl, ".parquet": read_parquet}
every_format = pytest.mark.parametrize(("suffix", "read"), READERS.items())


@every_format
def test_every_format_has_every_row_in_order(suffix: str, read: Reader) -> None:
    write_table()
    told = succeed("predict", "labels", "table.csv", "--out", f"answers{suffix}", "--top", "2")
    assert told.out == ""
    assert f"answers{suffix}: 3 rows, 1 of them without an answer" in told.err
    first, bad, last = read(f"answers{suffix}")
    assert [*first] == ["id", "text", "note", "answer", "probability", "top_k", "reason"]
    assert (first["id"], first["text"], first["note"]) == ("1", "the red cat", 'a, "b"')
    assert (last["id"], last["text"], last["note"] or None) == ("3", "the dog", None)
    assert {bad[name] for name in bad if name != "reason"} == {None}
    assert bad["reason"].startswith("1 fields where the header has 3")
    top = json.loads(first["top_k"]) if suffix == ".csv" else first["top_k"]
    assert {each["answer"] for each in top} == {*LABELS}
    assert sum(each["probability"] for each in top) == pytest.approx(1)
    assert top[0] == {"answer": first["answer"], "probability": pytest.approx(float(first["probability"]))}


def test_standard_output_is_the_file() -> None:
    write_table()
    printed = succeed("predict", "labels", "table.csv").out
    succeed("predict", "labels", "table.csv", "--out", "answers.csv")
    assert Path("answers.csv").read_text() == printed
    assert [row["top_k"] for row in table_rows(printed)] == ["", "", ""]


def test_answers_are_read_again_as_data() -> None:
    """Own columns with the names of answers are kept under other names."""
    write_table()
    succeed("predict", "labels", "table.csv", "--out", "first.csv")
    succeed("predict", "labels", "first.csv", "--out", "second.jsonl")
    first, _, last = read_jsonl("second.jsonl")
    assert (first["data.answer"], first["data.reason"]) == (first["answer"], "")
    assert last["answer"] in LABELS
    rows = [row for row in read_rows(Path("first.csv"), ("text", "answer")) if isinstance(row, Row)]
    assert [row.fields["text"] for row in rows] == ["the red cat", "the dog"]


def test_places_are_lists() -> None:
    Path("words.txt").write_text("the cat sits\n\nthe dog\n")
    succeed("predict", "tags", "words.txt", "--out", "answers.jsonl", "--top", "2", "--threshold", "0.999")
    first, bad, last = read_jsonl("answers.jsonl")
    assert (first["tokens"], bad["tokens"], last["tokens"]) == (["the", "cat", "sits"], None, ["the", "dog"])
    assert first["answer"] == ["unsure"] * 3
    assert [len(first[name]) for name in ("probability", "top_k")] == [3, 3]
    for share, top in zip(first["probability"], first["top_k"], strict=True):
        assert top[0]["probability"] == share
        assert top[0]["answer"] in ("NOUN", "VERB", "X")
    (row, _, _) = table_rows(succeed("predict", "tags", "words.txt").out)
    assert json.loads(row["tokens"]) == ["the", "cat", "sits"]
    assert len(json.loads(row["answer"])) == len(json.loads(row["probability"])) == 3


def test_unsure() -> None:
    write_table()
    sure = table_rows(succeed("predict", "labels", "table.csv", "--threshold", "0").out)
    unsure = table_rows(succeed("predict", "labels", "table.csv", "--threshold", "1").out)
    assert [row["answer"] in LABELS for row in sure] == [True, False, True]
    assert [row["answer"] for row in unsure] == ["unsure", "", "unsure"]
    assert [row["probability"] for row in unsure] == [row["probability"] for row in sure]
    found = json.loads(succeed("predict", "labels", "table.csv", "--threshold", "1", "--json").out)
    assert found["labels"] == {"unsure": 2}


def test_a_text_in_quotes() -> None:
    rows = table_rows(succeed("predict", "labels", "--text", "the cat", "--text", "", "--text", 'a "b"').out)
    assert [row["text"] for row in rows] == ["the cat", "", 'a "b"']
    assert [bool(row["answer"]) for row in rows] == [True, False, True]
    found = json.loads(succeed("predict", "labels", "--text", "the cat", "--json").out)
    assert found["predictions"][0]["location"] == "line 1"


def test_other_names_of_columns() -> None:
    Path("more.csv").write_text(OTHER_NAMES)
    hint = "data.text=NAME"
    assert hint in refuse("predict", "labels", "more.csv")
    (row,) = table_rows(succeed("predict", "labels", "more.csv", "data.text=review").out)
    assert (row["review"], row["mood"], row["stars"]) == ("the red cat", "gut", "3")
    assert hint in refuse("evaluate", "labels", "more.csv")
    names = ("data.text=review", "data.label=mood")
    assert json.loads(succeed("evaluate", "labels", "more.csv", *names, "--json").out)["examples"] == 1
    for setting in ("model.width=3", "data.max_length=3", "data.source=review", "optimizer.lr=1"):
        line = refuse("predict", "labels", "more.csv", setting)
        assert f"{setting}: only data.label, data.text, data.encoding can be given for a trained run" in line
    assert "expected key.sub=value" in refuse("predict", "labels", "more.csv", "other.csv")


def test_data_without_labels_cannot_be_scored() -> None:
    Path("bare.csv").write_text("text\nthe red cat\n")
    line = refuse("evaluate", "labels", "bare.csv")
    assert "no column 'label'" in line
    assert "foveal predict" in line


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--out", "answers.xlsx"), "answers are written as .csv, .jsonl, .parquet"),
        (("--out", "nothing/answers.csv"), "no folder nothing"),
        (("--out", "labels.csv"), "exists; name another file, or replace it with --overwrite"),
        (("--out", "table.csv", "--overwrite"), "this is DATA itself"),
        (("--top", "0"), "--top 0: give at least 1"),
        (("--threshold", "80"), "--threshold 80: a probability is from 0 to 1"),
        (("--text", "a"), "table.csv and --text: give one of them"),
    ],
)
def test_options_that_are_refused(arguments: tuple[str, ...], reason: str) -> None:
    write_table()
    write_labels()
    before = Path("labels.csv").read_bytes()
    assert reason in refuse("predict", "labels", "table.csv", *arguments)
    assert Path("labels.csv").read_bytes() == before


def test_what_is_no_file_may_be_a_text() -> None:
    assert "a text itself is given by --text 'the cat'" in refuse("predict", "labels", "the cat")
    assert "no DATA" in refuse("predict", "labels")


def test_other_runs_read_no_lines(finished: Path) -> None:
    assert "has no predictions for rows" in refuse("predict", finished, "--text", "a")
    assert "has no predictions for rows" in refuse("predict", finished, "-")


def test_a_file_is_replaced_only_if_asked() -> None:
    write_table()
    Path("answers.csv").write_text("mine")
    succeed("predict", "labels", "table.csv", "--out", "answers.csv", "--overwrite")
    assert len(read_csv("answers.csv")) == 3


def test_a_full_disk_leaves_nothing(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_table()
    before = {path.name for path in here.iterdir()}

    def full(descriptor: int, content: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(AssertionError, match=r"answers\.parquet: can't write: No space left"):
        succeed("predict", "labels", "table.csv", "--out", "answers.parquet")
    assert {path.name for path in here.iterdir()} == before


def test_a_line_is_answered_before_the_next_is_read(foveal: list[str]) -> None:
    command = [*foveal, "predict", "labels", "-"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for text in ("the red cat", "the dog"):
            process.stdin.write(f"{text}\n")
            process.stdin.flush()
            if text == "the red cat":
                assert process.stdout.readline() == "text,answer,probability,top_k,reason\n"
            assert process.stdout.readline().startswith(f"{text},")
        process.stdin.close()
        assert process.stdout.read() == ""
    assert process.returncode == 0


@pytest.mark.parametrize(("encoding", "label"), [("ascii", r"schl\xe9cht"), ("utf-8", "schlécht")])
def test_lines_in_a_pipe(foveal: list[str], encoding: str, label: str) -> None:
    """Bad lines keep their place, whatever the encoding of standard output."""
    done = subprocess.run(
        [*foveal, "predict", "labels", "-", "--top", "2"],
        input=b"the cat\n\xff\n\nthe dog",
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        check=True,
    )
    rows = table_rows(done.stdout.decode(encoding))
    assert [row["text"] for row in rows] == ["the cat", "", "", "the dog"]
    assert ["not UTF-8" in rows[1]["reason"], "empty" in rows[2]["reason"]] == [True, True]
    assert label in rows[0]["top_k"]


def test_no_lines(foveal: list[str]) -> None:
    for redirection, reason in (("</dev/null", "no lines in it"), ("<&-", "closed")):
        command = ["sh", "-c", f'exec "$@" {redirection}', "sh", *foveal, "predict", "labels", "-"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        first, last = done.stderr.splitlines()
        assert (done.returncode, first) == (2, "foveal predict ...")
        assert f"standard input: {reason}" in last


def test_scores_on_rows_of_the_training_are_told(learned: Path) -> None:
    """By the path of the run's data, or by the hash of its training split; not on its held-out rows."""
    told = succeed("evaluate", "labels", learned / "labels.csv", "--json")
    assert "the run was trained on rows of these data" in told.err
    assert json.loads(told.out)["trained_on"] is True
    write_labels("rows.csv")
    held_out = ("--valid", "held.csv")
    Path("held.csv").write_text("text,label\na red cat,cat\na red dog,none\n")
    succeed("train", "rows.csv", *SMALL, *held_out, "--budget", "1steps", "--run", "other")
    shutil.copy("rows.csv", "copy.csv")
    assert "was trained on rows of" in succeed("evaluate", "other", "copy.csv").err
    assert "was trained on rows of" not in succeed("evaluate", "other", "held.csv").err
    assert "was trained on rows of" not in succeed("evaluate", "other").err


def test_a_table_on_standard_input_is_refused() -> None:
    """Its header would be answered as a text, and its rows with their labels."""
    for header in ("text,label", 'id;"text"', "label | text"):
        assert f"'{header}' is the header of a table with the column 'text'" in refuse(
            "predict", "labels", "--text", header
        )
    succeed("predict", "labels", "--text", "a text, label", "--text", "text,label")
    assert "the column 'tokens'" in refuse("predict", "tags", "--text", "tokens,tags")
