"""The splits of DATA by the names of folders and files, whatever their kind; and the shards of a table."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.files.split_names import split_of_name
from foveal.data.open import open_path
from foveal.tasks.infer import infer_task
from tests.support.image_bytes import encode_image, gradient_image
from tests.support.image_folders import write_files
from tests.support.pair_formats import SERIES_LABEL, TEXT_LABEL

NAMES = {
    "train": ["train", "Training", "x_train", "my_train", "TRAIN", "trainset", "news-train", "wiki.train"],
    "valid": ["val", "valid", "Validation", "dev", "x_val", "news-dev"],
    "test": ["Test", "testing", "eval", "x_test", "news-test", "TestData"],
}
TRIPLES = [
    ("Training", "dev", "Testing"),
    ("x_train", "x_val", "x_test"),
    ("my-train", "my-valid", "my-eval"),
]


def test_names_of_splits() -> None:
    for split, names in NAMES.items():
        assert {name: split_of_name(name) for name in names} == dict.fromkeys(names, split)
    others = ["latest", "contest", "trains", "value", "develop", "0", "", "unlabeled", "train_test"]
    assert [split_of_name(name) for name in others] == [None] * len(others)


def table(suffix: str) -> Callable[[str], bytes]:
    def content(label: str) -> bytes:
        rows = [{"text": f"it is {label} {number}", "label": label} for number in range(6)]
        if suffix == ".json":
            return json.dumps(rows).encode()
        if suffix == ".jsonl":
            return "\n".join(map(json.dumps, rows)).encode()
        separator = "," if suffix == ".csv" else "\t"
        return "\n".join(
            separator.join(row) for row in [["text", "label"], *(row.values() for row in rows)]
        ).encode()

    return content


@pytest.mark.parametrize("names", TRIPLES)
@pytest.mark.parametrize("location", ["folder", "data.zip"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".json"])
def test_tables(suffix: str, location: str, names: tuple[str, ...], tmp_path: Path) -> None:
    files = {f"{name}{suffix}": table(suffix)(name) for name in names} | {"README.md": b"# Data"}
    opened = open_path(write_files(tmp_path / location, files))
    assert {split: part.path.stem for split, part in opened.splits.items()} == dict(
        zip(("train", "valid", "test"), names, strict=True)
    )
    assert infer_task(opened, {}).name == "text-classification"
    assert str(opened.found_splits).endswith("; not used: README.md")


@pytest.mark.parametrize("names", TRIPLES)
@pytest.mark.parametrize("location", ["folder", "data.zip"])
def test_texts(location: str, names: tuple[str, ...], tmp_path: Path) -> None:
    files = {f"{name}.txt": f"This is the text of {name}.\n".encode() * 9 for name in names}
    opened = open_path(write_files(tmp_path / location, files | {"LICENSE": b"MIT"}))
    assert [part.path.stem for part in opened.splits.values()] == [*names]
    assert infer_task(opened, {}).name == "language-model"


@pytest.mark.parametrize("names", TRIPLES)
@pytest.mark.parametrize("location", ["folder", "data.zip"])
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".wav"])
def test_folders(suffix: str, location: str, names: tuple[str, ...], tmp_path: Path) -> None:
    content = b"RIFF" if suffix == ".wav" else encode_image(gradient_image(8, 8), "PNG")
    inside = [f"{label}/{number}{suffix}" for label in ("cat", "dog") for number in "ab"]
    files = {f"{name}/{file}": content for name in (*names, "unlabeled") for file in inside}
    opened = open_path(write_files(tmp_path / location, files))
    assert [part.path.name for part in opened.splits.values()] == [*names]
    assert opened.found_splits.unused == ("unlabeled",)
    kind = "audio-classification" if suffix == ".wav" else "image-classification"
    assert infer_task(opened, {}).name == kind


@pytest.mark.parametrize("names", [("train", "test", "sample"), ("tr", "te"), ("Testing", "Validation")])
def test_folders_of_pictures_that_may_be_splits_are_refused(names: tuple[str, ...], tmp_path: Path) -> None:
    picture = encode_image(gradient_image(8, 8), "PNG")
    data = write_files(tmp_path / "a", {f"{name}/{label}/1.png": picture for name in names for label in "xy"})
    with pytest.raises(UserError, match=r"look like splits.*; rename the folders to train, valid and test"):
        infer_task(open_path(data), {})


@pytest.mark.parametrize(
    "names", [("train-00000-of-00002", "train-00001-of-00002"), ("part-0001", "part-0002"), ("a", "b")]
)
def test_shards_are_one_table(names: tuple[str, ...], tmp_path: Path) -> None:
    data = write_files(tmp_path / "a", {f"{name}.csv": table(".csv")(name) for name in names})
    opened = open_path(data)
    assert [file.stem for file in opened.train.files] == [*names]
    assert infer_task(opened, {}).name == "text-classification"


def test_several_tables_are_named(tmp_path: Path) -> None:
    data = write_files(tmp_path / "a", {"a.csv": b"x,y\n1,2\n", "b.csv": b"text,label\na,b\n"})
    with pytest.raises(
        UserError, match=r"several tables \(a\.csv, b\.csv\) with different columns; name one"
    ):
        infer_task(open_path(data), {})


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.txt", b'{"text": "a"}\n{"text": "b"}\n' * 9, "JSON; rename the file to .json, or to .jsonl"),
        ("a.txt", b"ham\thello you\nspam\twin money\n" * 9, "a table separated by tabs; rename it to a.tsv"),
        ("a.txt", b"i feel low;sad\ni sing;joy\n" * 9, "a table separated by semicolons"),
        ("a.txt", b"images/1.jpg 0\nimages/2.jpg 1\n" * 9, "a list of files"),
        ("a.txt", b"__label__a it is so\n__label__b no\n" * 9, "in the format of fastText"),
        ("a.dat", b"1 2.5 3e4\n4 5 nan\n" * 9, "numbers; save series as .jsonl"),
        ("a.txt", b"The D\ncat N\n\nA D\ndog N\n\n" * 9, "words with tags"),
        ("eng.testa", b"The D\ncat N\n\nA D\ndog N\n\n" * 9, "rename the file to eng.testa.conll"),
        ("test_batch", b"\x80\x02}q\0" * 9, "a pickle, which is not read"),
        (
            "a.csv",
            b'"3","Markets rise","Shares rose on Monday in all markets"\n' * 9,
            "printf 'label,column2,text",
        ),
        ("a.xlsx", b"PK", ".xlsx is not read: save the table"),
        ("a.json", b'{"images": [], "annotations": []}', "in the format of COCO"),
        ("a.csv", b"review,mood\ngood film,1\nbad film,0\n" * 9, "data.text=review data.label=mood"),
        ("a.csv", b"text,mood\ngood film,1\nbad film,0\n" * 9, "data.label=mood, or --task language-model"),
    ],
)
def test_what_is_no_running_text_is_no_language_model(
    name: str, content: bytes, why: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as refused:
        infer_task(open_path(str(tmp_path / name)), {})
    assert why in str(refused.value)


@pytest.mark.parametrize("suffix", [".tsv", ".txt", ".csv", ""])
def test_the_series_of_the_ucr_archive_are_refused_with_a_command(suffix: str, tmp_path: Path) -> None:
    separator = {".csv": ",", ".tsv": "\t"}.get(suffix, "   ")
    for split, count in (("TRAIN", 8), ("TEST", 4)):
        rows = [[f"{n % 2 + 1}", *(f"{n - step / 8:.4e}" for step in range(9))] for n in range(count)]
        (tmp_path / f"Gun Point_{split}{suffix}").write_text(
            "".join(separator.join(row) + "\n" for row in rows)
        )
    files = [tmp_path] if suffix in (".tsv", ".csv", ".txt") else sorted(tmp_path.iterdir(), reverse=True)
    for path in files:
        with pytest.raises(UserError, match="the numbers of a series on each line, as in the UCR") as refused:
            infer_task(open_path(str(path)), {})
        command = str(refused.value).partition("folder series: ")[2].partition(". To learn it")[0]
        subprocess.run(["sh", "-euc", command], check=True, cwd=tmp_path)
    opened = open_path(str(tmp_path / "series"))
    assert infer_task(opened, {}).name == "series-classification"
    rows_read = {split: [*SERIES_LABEL.read(part, DataConfig(), [])] for split, part in opened.splits.items()}
    assert {split: len(rows) for split, rows in rows_read.items()} == {"train": 8, "test": 4}
    assert [row.fields["label"] for row in rows_read["test"]] == ["1", "2", "1", "2"]


@pytest.mark.parametrize("names", ["wav48/{}.wav txt/{}.txt", "genres/{}.wav images/{}.png"])
def test_folders_of_several_kinds_of_files_are_no_running_text(names: str, tmp_path: Path) -> None:
    files = {name.format(number): b"a" for name in names.split() for number in range(9)}
    with pytest.raises(UserError, match="there are files of several kinds"):
        infer_task(open_path(write_files(tmp_path / "a", files)), {})


def test_the_command_that_names_columns_makes_a_table(tmp_path: Path) -> None:
    row = '"{}","Title","a text of many words, number {}"\n'
    for split in ("train", "test"):
        (tmp_path / f"{split}.csv").write_text("".join(row.format(n % 3, f"{n} {split}") for n in range(9)))
    with pytest.raises(UserError, match="the first line looks like a row") as refused:
        infer_task(open_path(str(tmp_path)), {})
    subprocess.run(["sh", "-euc", "(cd " + str(refused.value).partition(": (cd ")[2]], check=True)
    assert str(tmp_path / "named") in str(refused.value)
    opened = open_path(str(tmp_path / "named"))
    assert infer_task(opened, {}).name == "text-classification"
    rows_read = [[*TEXT_LABEL.read(part, DataConfig(), [])] for part in opened.splits.values()]
    assert [len(rows) for rows in rows_read] == [9, 9]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.py", b"def f(x):\n\treturn x\n" * 9),
        ("a.c", b"int main() { return 0; }\n" * 9),
        ("a.md", b"| a | b |\n|---|---|\n| c | d |\n" * 9),
        ("a.txt", b"To be; or not to be.\nThat is the question.\n" * 9),
        ("names.txt", b"emma\nolivia\nava\n" * 9),
        ("play", b"First Citizen:\nBefore we proceed, hear me speak.\n\n" * 9),
    ],
)
def test_running_text_is_a_language_model(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    assert infer_task(open_path(str(tmp_path / name)), {}).name == "language-model"
