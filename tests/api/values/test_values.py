"""Values in memory become the same DATA, whatever library holds them, or are refused in one line."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import torch
from PIL import Image

from foveal.api.values.columns import columns_of, split_tables
from foveal.api.values.stored import store_values, stored_path
from foveal.core.errors import UserError
from foveal.store.cache import shorten_unpacked_paths

TEXTS, MOODS = ["good", "bad", "fine"], ["yes", "no", "yes"]


def table(values: Any, task: str | None = None) -> dict[str, list[Any]]:
    """Return the columns of the table that values become."""
    columns: dict[str, list[Any]] = pyarrow.parquet.read_table(stored_path(values, task)).to_pydict()
    return columns


class Pairs(torch.utils.data.Dataset[tuple[Any, int]]):
    """A dataset of torch: gray pictures with their labels."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return torch.full((1, 6, 8), 10 * index, dtype=torch.uint8), index


def frame_of_pandas() -> Any:
    return pytest.importorskip("pandas").DataFrame({"text": TEXTS, "label": MOODS})


def frame_of_polars() -> Any:
    return pytest.importorskip("polars").DataFrame({"text": TEXTS, "label": MOODS})


def dataset_with_classes() -> Any:
    datasets = pytest.importorskip("datasets")
    classes = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
    )
    return datasets.Dataset.from_dict({"text": TEXTS, "label": [1, 0, 1]}, features=classes)


@pytest.mark.parametrize(
    "make",
    [
        lambda: {"text": TEXTS, "label": MOODS},
        lambda: {"text": np.array(TEXTS), "label": tuple(MOODS)},
        lambda: [{"text": text, "label": mood} for text, mood in zip(TEXTS, MOODS, strict=True)],
        lambda: ({"text": text, "label": mood} for text, mood in zip(TEXTS, MOODS, strict=True)),
        lambda: pyarrow.table({"text": TEXTS, "label": MOODS}),
        frame_of_pandas,
        frame_of_polars,
        dataset_with_classes,
    ],
)
def test_tables_of_any_library(make: Callable[[], Any]) -> None:
    assert table(make()) == {"text": TEXTS, "label": MOODS}


@pytest.mark.parametrize("labels", [[*np.array(MOODS)], [*np.arange(3)], [*torch.arange(3)], [*np.ones(3)]])
def test_labels_that_are_numbers_and_texts_of_numpy_and_torch(labels: list[Any]) -> None:
    assert table({"text": TEXTS, "label": labels}) == {"text": TEXTS, "label": [x.item() for x in labels]}


def test_texts_and_pairs() -> None:
    assert table(TEXTS) == {"text": TEXTS}
    pairs = [*zip(TEXTS, MOODS, strict=True)]
    assert table(pairs, "text-classification") == {"text": TEXTS, "label": MOODS}
    assert table(pairs, "translation") == {"source": TEXTS, "target": MOODS}
    assert table((TEXTS, MOODS), "text-classification") == {"text": TEXTS, "label": MOODS}
    assert [*table([("Haus", "house"), ("Baum", "tree"), ("Tor", "gate")])] == ["source", "target"]
    with pytest.raises(UserError, match="texts with labels, or sources with targets"):
        stored_path(pairs * 4)


@pytest.mark.parametrize(
    "make",
    [
        lambda: (np.stack([np.full((6, 8), 10 * index, np.uint8) for index in range(3)]), [0, 1, 2]),
        lambda: (torch.stack([Pairs()[index][0] for index in range(3)]), torch.arange(3)),
        lambda: {"image": [Pairs()[index][0].numpy() for index in range(3)], "y": np.arange(3)},
        lambda: ([Image.new("L", (8, 6), 10 * index) for index in range(3)], [0, 1, 2]),
        lambda: Pairs(),
    ],
)
def test_images_of_any_library(make: Callable[[], Any]) -> None:
    columns = table(make())
    assert columns["label"] == [0, 1, 2]
    pictures = [Image.open(io.BytesIO(cell["bytes"])) for cell in columns["image"]]
    assert [(picture.mode, picture.size, picture.getpixel((0, 0))) for picture in pictures] == [
        ("L", (8, 6), 10 * index) for index in range(3)
    ]


def test_pictures_of_other_modes_and_sizes() -> None:
    modes = ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr"]
    pictures = [Image.new(mode, (4 + index, 5)) for index, mode in enumerate(modes)]
    assert len(table((pictures, [*range(8)]))["image"]) == 8


def test_floats_of_pictures_have_one_scale() -> None:
    dark = np.zeros((2, 4, 4, 3), np.float32)
    dark[1] = 1.0
    pictures = [Image.open(io.BytesIO(c["bytes"])) for c in table((dark, [0, 1]))["image"]]
    assert [picture.getpixel((0, 0)) for picture in pictures] == [(0, 0, 0), (255, 255, 255)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: (np.arange(12.0).reshape(3, 4), [0, 1, 2]),
        lambda: (torch.arange(12.0).reshape(3, 4), torch.arange(3)),
        lambda: ([[0.0, 1, 2, 3], [4.0, 5, 6, 7], [8.0, 9, 10, 11]], [0, 1, 2]),
        lambda: {"values": np.arange(12.0).reshape(3, 4, 1), "label": [0, 1, 2]},
    ],
)
def test_series_of_any_library(make: Callable[[], Any]) -> None:
    columns = table(make())
    assert columns["label"] == [0, 1, 2]
    assert columns["values"][1] == [[4.0], [5.0], [6.0], [7.0]]


def test_missing_cells_stay_in_their_rows() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["a", None, "c"], "label": [1.0, 2.0, float("nan")]})
    assert table(frame) == {"text": ["a", None, "c"], "label": [1.0, 2.0, None]}


def test_equal_values_are_stored_once_and_named_by_their_index() -> None:
    first, second = stored_path(TEXTS), stored_path([*TEXTS])
    assert first == second
    assert stored_path(TEXTS[:2]) != first
    assert shorten_unpacked_paths(f"{first}, row 2: empty") == "list[1]: empty"
    assert shorten_unpacked_paths(f"reading {first}") == "reading list"


def test_paths_and_names_are_unchanged() -> None:
    assert stored_path("a.en,b.de") == "a.en,b.de"
    assert stored_path(Path("reviews.csv")) == "reviews.csv"


def test_splits() -> None:
    assert split_tables(TEXTS) == {"train": TEXTS}
    tables = {"train": {"text": TEXTS}, "validation": {"text": TEXTS[:1]}}
    assert split_tables(tables) == {"train": {"text": TEXTS}, "valid": {"text": TEXTS[:1]}}
    with pytest.raises(UserError, match="name them train, valid and test"):
        split_tables({"a": {"text": TEXTS}, "train": {"text": TEXTS}})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "no rows"),
        ({}, "no rows"),
        ({"text": []}, "no rows"),
        ({"text": TEXTS, "label": MOODS[:2]}, "different lengths: text 3, label 2"),
        ({"text": "abc"}, "text: a column can't be of the type str"),
        (7, "int: not a kind of data that can be read"),
        (b"abc", "bytes: not a kind of data that can be read"),
        (["a", ("b", "c")], "row 0 is a single value, and row 1 a pair"),
        ({"text": ["a", 3]}, "'text': row 0 is a text, and row 1 a number"),
        ({"text": ["a", None, object()]}, "'text', row 2: object"),
        ({"x": np.zeros((3, 5, 5)), "label": [1, 2, 3]}, "gray pictures, or series of 5 steps of 5 channels"),
        ({"image": np.full((3, 5, 5), 7.0), "label": [1, 2, 3]}, "neither from 0 to 1 nor from 0 to 255"),
        ({"image": [np.zeros((5, 5, 7), np.uint8)], "label": [1]}, "is no image"),
        ({"text": TEXTS, "label": np.zeros((3, 2))}, "give one label a row"),
        ((torch.tensor(3), torch.tensor(3)), "a single number"),
    ],
)
def test_refused_in_one_line(values: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        table(columns_of(values) if isinstance(values, dict) else values)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_column_of_labels_of_arrays() -> None:
    series = {"signal": np.arange(12.0).reshape(3, 4), "kind": MOODS, "place": TEXTS}
    stored = store_values(series, None, "kind")
    assert stored.label is None
    assert pyarrow.parquet.read_table(stored.path).column_names == ["values", "label", "place"]
    assert store_values({"review": TEXTS, "kind": MOODS}, None, "kind").label == "kind"
    with pytest.raises(UserError, match="did you mean 'kind'"):
        store_values(series, None, "kid")


def test_without_pyarrow_tables_are_json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Images are the only values that need it, and ask for its extra."""
    tables: list[Any] = [
        {"text": TEXTS, "label": MOODS},
        {"values": np.arange(6.0).reshape(3, 2), "label": [0, 1, 2]},
    ]
    expected = [table(values) for values in tables]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for values, columns in zip(tables, expected, strict=True):
        path = Path(stored_path(values))
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert path.suffix == ".jsonl"
        assert {name: [row[name] for row in rows] for name in columns} == columns
    with pytest.raises(UserError, match="images in memory needs the package pyarrow: pip install"):
        stored_path(Pairs())
