"""What DATA is for: its form, its columns, and the settings that name them."""

import json
import shlex
import subprocess
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pyarrow
import pytest
from PIL import Image
from pyarrow import parquet

from foveal.core.errors import UserError
from foveal.data.open import OpenedData, open_path
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.infer import infer_task, task_for_data
from foveal.tasks.registry import task_class
from foveal.tasks.text_classification import TextClassificationTask


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "rows.csv"
    path.write_text("review,mood\nfine,good\n")
    return str(path)


NAMED = {
    "text=review": "language-model",
    "label=mood": "text-classification",
    "text=review label=mood": "text-classification",
    "source=review target=mood": "translation",
    "source=review": "translation",
    "tags=mood": "tagging",
}


@pytest.mark.parametrize("settings", NAMED)
def test_settings_that_name_columns_decide(settings: str, table: str) -> None:
    """So that what lacks, or is misspelt, is an error of the task that was meant."""
    named = dict(setting.split("=") for setting in settings.split())
    assert infer_task(open_path(table), named).name == NAMED[settings]


def test_the_column_of_texts_counts_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("review,label\nfine,good\n")
    with pytest.raises(UserError, match="no task reads the columns 'review', 'label'; "):
        infer_task(open_path(str(path)), {})
    assert infer_task(open_path(str(path)), {"text": "review"}).name == "text-classification"
    path.write_text("source,target,mood\na,b,c\n")
    assert infer_task(open_path(str(path)), {}).name == "translation"
    assert infer_task(open_path(str(path)), {"text": "source", "label": "mood"}).name == "text-classification"


def test_other_forms_say_their_task_themselves(tmp_path: Path) -> None:
    path = tmp_path / "sentences.conllu"
    path.write_text("")
    assert infer_task(open_path(str(path)), {"text": "x"}).name == "tagging"
    assert infer_task(open_path("scan"), {"label": "x"}).name == "transduction"


class StarRatingTask(TextClassificationTask):
    """A task from outside that recognizes no data."""

    name = "star-rating"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        return NO_FIT


def test_a_named_task_stays_if_the_data_fit_its_source(tmp_path: Path, table: str) -> None:
    data = open_path(table)
    assert task_for_data(StarRatingTask, data, {"label": "mood"}) is StarRatingTask
    assert task_for_data(TextClassificationTask, data, {"label": "mood"}) is TextClassificationTask
    (tmp_path / "cats").mkdir()
    (tmp_path / "dogs").mkdir()
    for name in ("cats", "dogs"):
        Image.new("RGB", (4, 4)).save(tmp_path / name / "1.png")
    images = open_path(str(tmp_path))
    assert task_for_data(StarRatingTask, images, {}) is task_class("image-classification")


TAGGED = {
    "tokens,ner_tags": "data.tags=ner_tags",
    "words,pos": "data.tags=pos, after renaming the column 'words' to tokens",
}


@pytest.mark.parametrize("columns", TAGGED)
@pytest.mark.parametrize(
    ("words", "tags"),
    [("the {0}", "DET N"), ("\"['the', '{0}']\"", '"[0, 1]"'), ("\"['the' '{0}']\"", '"[0 1]"')],
)
def test_columns_of_words_and_tags_are_known_under_other_names(
    columns: str, words: str, tags: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    rows = [f"{words.format(name)},{tags}" for name in ("cat", "dog", "cow")]
    path.write_text("\n".join([columns, *rows]) + "\n")
    with pytest.raises(UserError) as error:
        infer_task(open_path(str(path)), {})
    assert str(error.value).endswith(f"is it tagged words? {TAGGED[columns]}")


def test_columns_of_unequal_lists_are_not_tagged_words(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("one,other\na cat,x y z\na dog,x\n")
    with pytest.raises(UserError, match=r"name those to learn: data\.text=NAME"):
        infer_task(open_path(str(path)), {})


@pytest.mark.parametrize(
    ("name", "rows", "header"),
    [
        ("a.csv", '"{label}","A title","a long text {number}"', "label,column2,text"),
        ("a.tsv", "a text {number}\t{label}", "text\\tlabel"),
    ],
)
def test_a_table_without_a_header_is_told(name: str, rows: str, header: str, tmp_path: Path) -> None:
    lines = [rows.format(label=1 + number % 2, number=number) for number in range(20)]
    (tmp_path / name).write_text("\n".join(lines) + "\n")
    with pytest.raises(UserError, match="the first line looks like a row, since '") as error:
        infer_task(open_path(str(tmp_path / name)), {})
    written = f'{{ printf \'{header}\\n\'; cat "$f"; }} > "named/$f"'
    assert written in str(error.value)
    assert f"(cd {tmp_path} && for f in {name};" in str(error.value)


@pytest.mark.parametrize(
    ("name", "rows", "header"),
    [
        ("it's.csv", '"{label}";"A title; more";"a long text {number}"', "label;column2;text"),
        ("b c.csv", "{label}|a text of many words {number}", "label|text"),
        ("d.tsv", "{label}\ta text of many words {number}", "label\ttext"),
    ],
)
def test_the_command_that_writes_a_header_keeps_the_file(
    name: str, rows: str, header: str, tmp_path: Path
) -> None:
    content = "".join(rows.format(label=1 + number % 2, number=number) + "\n" for number in range(20))
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError) as error:
        infer_task(open_path(str(tmp_path / name)), {})
    command = "(cd " + str(error.value).partition(": (cd ")[2]
    subprocess.run(["sh", "-euc", command], check=True)
    assert (tmp_path / name).read_text() == content
    assert (tmp_path / "named" / name).read_text() == f"{header}\n{content}"
    assert infer_task(open_path(str(tmp_path / "named")), {}).name == "text-classification"


NUMBERED = [{"0": f"a text of many words {number}", "1": number % 2} for number in range(20)]


def write_parquet(path: Path) -> None:
    parquet.write_table(pyarrow.Table.from_pylist(NUMBERED), path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.parquet", ""),
        ("a.jsonl", "".join(json.dumps(row) + "\n" for row in NUMBERED)),
        ("a.json", json.dumps(NUMBERED)),
        ("pandas.csv", "0,1\n" + "".join(f"{row['0']},{row['1']}\n" for row in NUMBERED)),
        ("survey.csv", "How do you feel today\n" + "".join(f"well {number}\n" for number in range(20))),
        ("b.csv", "How do you feel today,What would you change here\n" + "so,no\nwell,a bit\n" * 9),
        ("joined.csv", "review,mood\ngood film,1\nbad film,0\n" * 9),
    ],
)
def test_no_header_is_written_above_names_of_columns(name: str, content: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write_parquet(path) if name == "a.parquet" else path.write_text(content)
    with pytest.raises(UserError, match="no task reads the columns") as error:
        infer_task(open_path(str(path)), {})
    assert "write" not in str(error.value)


def test_names_of_columns_in_commands_are_quoted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("my review,its mood\n" + "".join(f"a film {n},{n % 2}\n" for n in range(20)))
    with pytest.raises(UserError) as error:
        infer_task(open_path(str(path)), {})
    settings = shlex.split(str(error.value).partition("labeled texts? ")[2])
    assert settings == ["data.text=my review", "data.label=its mood"]
    assert (
        infer_task(open_path(str(path)), {"text": "my review", "label": "its mood"}).name
        == "text-classification"
    )


SENTENCES = [f"the {one} {two}" for one in ("red", "big", "old") for two in ("cat", "dog", "hen", "cow")]


@pytest.mark.parametrize(
    ("header", "rows", "hint"),
    [
        (
            "instruction,input,output",
            [f"{text},,{other}" for text, other in pairwise(SENTENCES)],
            "is it pairs of texts? data.source=instruction data.target=output",
        ),
        (
            "gold_label,sentence1,sentence2",
            [f"{'yn'[text < 'the old']},{text},{other} too" for text, other in pairwise(SENTENCES)],
            "is it labeled texts? data.text=sentence2 data.label=gold_label",
        ),
        (
            "Sentence #,it's",
            [f"{text} or so,{'yn'[text < 'the old']}" for text in SENTENCES],
            """is it labeled texts? 'data.text=Sentence #' 'data.label=it'"'"'s'""",
        ),
        ("# by me\n# v1\ntext,label", [f"{text},y" for text in SENTENCES], "lines 1-2 are comments; remove"),
    ],
)
def test_hints_name_the_columns_so_that_a_shell_reads_them(
    header: str, rows: list[str], hint: str, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("\n".join([header, *rows]) + "\n")
    with pytest.raises(UserError) as error:
        infer_task(open_path(str(tmp_path / "a.csv")), {})
    assert hint in str(error.value)
