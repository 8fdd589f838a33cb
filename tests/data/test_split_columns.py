"""Columns that name the split of each row are never passed over in silence."""

import json
from pathlib import Path
from typing import Any

import pytest

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data.open import open_path
from foveal.data.prepare_corpus import prepare_corpus
from foveal.data.prepare_examples import prepare_examples
from tests.support.class_folders import CONFIG
from tests.support.image_folders import encode_png, random_images
from tests.support.pair_formats import IMAGE_LABEL, TEXT_LABEL

COLUMNS: dict[str, tuple[str, ...]] = {
    "split": ("train", "train", "valid", "test"),
    "Set": ("TRAIN", "TRAIN", "dev", "TEST"),
    "Usage": ("Training", "Training", "PublicTest", "PrivateTest"),
    "is_test": ("False", "False", "False", "True"),
    "is_train": ("1", "1", "1", "0"),
}
KINDS = ["a.csv", "a.tsv", "b;.csv", "a.jsonl", "pictures csv", "pictures jsonl"]
ROWS = 24


def write_rows(folder: Path, kind: str, column: str, values: tuple[str, ...]) -> Path:
    """Write rows with a column of splits. Return the file or folder."""
    images = [*random_images(ROWS)] if kind.startswith("pictures") else []
    path = folder / ("the pictures" if images else kind)
    rows = [
        {"file_name" if images else "text": f"{n}.png" if images else f'a "text", {n}', "label": "ab"[n % 2]}
        | {column: values[n // 2 % len(values)]}
        for n in range(ROWS)
    ]
    for number, image in enumerate(images):
        path.mkdir(exist_ok=True)
        (path / f"{number}.png").write_bytes(encode_png(image))
    table = path / f"metadata.{kind.split()[1]}" if images else path
    if table.suffix == ".jsonl":
        table.write_text("\n".join(map(json.dumps, rows)))
        return path
    separator = {".tsv": "\t", ".csv": ";" if ";" in kind else ","}[table.suffix]
    cells = ([f'"{value}"'.replace('"text"', '""text""') for value in row.values()] for row in rows)
    lines = [[*rows[0]], *cells]
    table.write_text("\n".join(map(separator.join, lines)))
    return path


def prepare(data: Path, log: Any = print, **named: str) -> Any:
    pairs = IMAGE_LABEL if data.is_dir() and "pictures" in data.name else TEXT_LABEL
    return prepare_examples(pairs, str(data), named.get("valid"), named.get("test"), CONFIG, log)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_of_splits_is_refused(kind: str, column: str, tmp_path: Path) -> None:
    values = COLUMNS[column]
    data = write_rows(tmp_path, kind, column, values)
    with pytest.raises(UserError, match=f"the column '{column}' .* names the split of each row") as refused:
        prepare(data)
    assert prepare(data, test=str(data)).test is not None
    kind_of_part = "folder" if data.is_dir() else "file"
    assert f"write the rows of each split to a {kind_of_part} of its own, named test, train" in str(
        refused.value
    )


def test_a_corpus_with_a_column_of_splits_is_refused(tmp_path: Path) -> None:
    data = write_rows(tmp_path, "a.csv", "split", COLUMNS["split"])
    with pytest.raises(UserError, match="names the split of each row"):
        prepare_corpus(str(data), DataConfig(), None, None, print)


def test_a_column_of_folds_is_told_and_other_values_are_not(tmp_path: Path) -> None:
    told: list[str] = []
    prepare(write_rows(tmp_path, "a.csv", "fold", ("0", "1", "2")), told.append)
    assert any("the column 'fold' (0, 1, 2) is not used as splits" in line for line in told)
    told.clear()
    prepare(write_rows(tmp_path, "a.csv", "set", ("train", "car", "test")), told.append)
    prepare(write_rows(tmp_path, "a.csv", "part", ("train",)), told.append)
    assert not any("split" in line for line in told)


def test_files_of_windows_are_hidden(tmp_path: Path) -> None:
    for name in ("Thumbs.db", "desktop.ini", "a.txt", ".DS_Store"):
        (tmp_path / name).write_text("x")
    assert open_path(str(tmp_path)).whole.listing.files == ["a.txt"]
