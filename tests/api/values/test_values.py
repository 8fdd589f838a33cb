"""Values in memory become the same DATA, whatever library holds them, or are refused in one line."""

import io
import json
import sys
from collections import deque
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import torch
from PIL import Image

from foveal.api.values.columns import columns_of, split_tables
from foveal.api.values.reader import Reader, training_reader
from foveal.api.values.stored import store_values
from foveal.api.values.stored import stored_path as path_for
from foveal.core.errors import UserError
from foveal.data.datasets.dataset_cache import resolve
from foveal.store.cache import shorten_unpacked_paths

IMAGES = np.arange(3 * 9 * 12 * 3, dtype=np.uint8).reshape(3, 9, 12, 3)
TEXTS, MOODS = ["good", "bad", "fine"], ["yes", "no", "yes"]


def stored_path(values: Any, task: str | None = None) -> str:
    """Return the path of values to train on."""
    return path_for(values, training_reader(task))


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
    assert [*table((IMAGES, TEXTS), "captioning")] == ["image", "text"]
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
    assert [*columns.values()][1] == [0, 1, 2]
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
    columns = table(make(), "series-classification")
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


def column_of_pandas() -> Any:
    return pytest.importorskip("pandas").Series(TEXTS, index=[5, 7, 9])


@pytest.mark.parametrize(
    "make",
    [
        column_of_pandas,
        lambda: pytest.importorskip("polars").Series(TEXTS),
        lambda: pyarrow.array(TEXTS),
        lambda: pyarrow.chunked_array([TEXTS[:1], TEXTS[1:]]),
        lambda: np.array(TEXTS, object),
        lambda: dataset_with_classes()["text"],
        lambda: deque(TEXTS),
    ],
)
def test_columns_of_any_library(make: Callable[[], Any]) -> None:
    """A column without a name is the column of texts of its reader. One of labels is that of labels."""
    reader = Reader("text", "review", None, "mood", frozenset(("review", "mood")))
    assert pyarrow.parquet.read_table(path_for(make(), reader)).to_pydict() == {"review": TEXTS}
    pairs = pyarrow.parquet.read_table(path_for((make(), make()), reader)).to_pydict()
    assert pairs == {"review": TEXTS, "mood": TEXTS}
    assert table({"text": make(), "label": MOODS}) == {"text": TEXTS, "label": MOODS}


def test_a_range_of_labels() -> None:
    assert table({"text": TEXTS, "label": range(3)}) == {"text": TEXTS, "label": [0, 1, 2]}


def test_columns_that_are_not_read_may_be_of_any_type() -> None:
    days = [date(2020, 1, day) for day in (1, 2, 3)]
    odd: list[list[Any]] = [days, [{}, {"a": 1}, {}], [Decimal(1)] * 3, [b"x"] * 3, [1, "a", None]]
    odd.append([[1, "a"], None, [True]])
    columns = table({"text": TEXTS, **{str(number): cells for number, cells in enumerate(odd)}})
    assert columns["0"] == ["2020-01-01", "2020-01-02", "2020-01-03"]
    assert columns["4"] == ["1", "a", None]
    assert columns["5"] == ["[1, 'a']", None, "[True]"]
    pictures = [Image.fromarray(image) for image in IMAGES]
    more = {"image": pictures, "mask": pictures, "vector": IMAGES[:, 0, :, 0], "label": MOODS}
    assert table(more)["vector"][0] == IMAGES[0, 0, :, 0].tolist()
    assert [*table(more)] == ["image", "vector", "label"]
    with pytest.raises(UserError, match="'text', row 0: date"):
        table({"text": days})


@pytest.mark.parametrize(
    ("values", "kind", "rows"),
    [
        (Image.fromarray(IMAGES[0]), "image", 1),
        (IMAGES[0], "image", 1),
        (IMAGES[0, :, :, 0], "image", 1),
        (IMAGES[:, :, :, 0] / 255, "image", 3),
        (np.zeros((3, 8, 2)), "series", 3),
        (np.zeros((8, 2)), "series", 1),
        ([np.zeros((8, 2)), np.zeros((5, 2))], "series", 2),
        ([0.5, 1.5, 2.5], "series", 1),
        (np.zeros(8), "series", 1),
    ],
)
def test_a_reader_knows_what_arrays_are(values: Any, kind: str, rows: int) -> None:
    column = {"image": "image", "series": "values"}[kind]
    reader = Reader(kind, needed=frozenset((column,)), channels=2)
    assert len(pyarrow.parquet.read_table(path_for(values, reader))[column]) == rows


def test_an_array_of_one_image_or_several_is_asked_about() -> None:
    with pytest.raises(UserError, match="give \\[image\\]"):
        path_for(np.moveaxis(IMAGES[0], 2, 0), Reader("image", channels=3))


@pytest.mark.parametrize("mode", ["I", "F", "I;16"])
def test_pictures_of_more_than_8_bits(mode: str) -> None:
    """They are read as arrays are, so Pillow need not write their modes."""
    levels = np.array([[[0, 255 * 256]] * 2, [[256, 128 * 256]] * 2])
    types = {"I": np.int32, "F": np.float32, "I;16": np.uint16}
    pictures = [Image.fromarray(image.astype(types[mode])) for image in levels]
    assert {picture.mode for picture in pictures} == {mode}
    cells = table({"image": pictures, "label": [0, 1]})["image"]
    read = [np.asarray(Image.open(io.BytesIO(cell["bytes"])))[0].tolist() for cell in cells]
    assert read == ([[0, 254], [1, 128]] if mode == "F" else [[0, 255], [1, 128]])


def test_an_image_with_nan_or_without_pixels_is_skipped() -> None:
    images = (IMAGES / 255).astype(np.float32)
    images[1, 0, 0, 0] = np.nan
    assert [cell is None for cell in table((images, [0, 1, 2]))["image"]] == [False, True, False]
    pictures = [Image.new("L", (3, 4)), Image.new("L", (0, 4)), np.zeros((2, 0, 3), np.uint8)]
    assert [cell is None for cell in table({"image": pictures[:2]})["image"]] == [False, True]
    assert table({"image": pictures[2:]})["image"] == [None]
    assert table({"values": [[1.0], []]})["values"] == [[[1.0]], []]


def test_whole_numbers_beside_a_missing_cell_stay_whole() -> None:
    frame = pytest.importorskip("pandas").DataFrame({"text": TEXTS, "label": [1, 2, None]})
    assert table(frame)["label"] == [1, 2, None]


def test_a_single_text_is_a_file_which_is_split() -> None:
    stored = store_values(["one\ntwo"], training_reader())
    assert Path(stored.path).read_text("utf-8") == "one\ntwo"
    assert shorten_unpacked_paths(stored.path) == "list"


def test_values_that_are_gone_are_to_be_written_again() -> None:
    path = Path(stored_path(["gone", "with"]))
    path.unlink()
    with pytest.raises(UserError, match="with the same values"):
        resolve(str(path), print)


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
        ({1: TEXTS, "1": TEXTS}, "two columns are named '1'; rename one"),
        (
            {"text": TEXTS, "label": [2**70, 1, 2]},
            "'label': Python int too large to convert to C",
        ),
        ({"text": ["\ud800", "a"], "label": [1, 2]}, "surrogates not allowed; leave out half characters"),
        ({"values": np.ones((3, 8)) * 1j, "label": [1, 2, 3]}, "'values', row 0: no series of numbers"),
        ({"values": np.ones((3, 8)), "label": [[1], [2], [3]]}, "give one label a row (y[:, 0])"),
        ({"text": ["a", None, object()]}, "'text', row 2: object"),
        ({"x": np.zeros((3, 5, 5)), "label": [1, 2, 3]}, "gray pictures, or series of 5 steps of 5 channels"),
        ({"image": np.full((3, 5, 5), 7.0), "label": [1, 2, 3]}, "neither from 0 to 1 nor from 0 to 255"),
        ({"image": [np.zeros((5, 5, 7), np.uint8)], "label": [1]}, "is no image"),
        ({"text": TEXTS, "label": np.zeros((3, 2))}, "give one label a row"),
        ((torch.tensor(3), torch.tensor(3)), "a single number"),
        ((np.zeros((60, 5)), [0, 1] * 30), "an array (60, 5): a table of 5 features"),
        (None, "NoneType: not a kind of data that can be read"),
        (torch.utils.data.DataLoader(Pairs()), "give its rows: loader.dataset"),
        ("the cat sat.\n" * 500, "a text of 6,500 letters"),
    ],
)
def test_refused_in_one_line(values: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        table(columns_of(values) if isinstance(values, dict) else values)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_the_column_of_labels() -> None:
    series = {"signal": np.arange(12.0).reshape(3, 4), "kind": MOODS, "place": [1, None, 3]}
    stored = store_values(series, training_reader(label="kind"))
    assert (stored.label, stored.number_columns) == ("kind", frozenset(("place",)))
    assert pyarrow.parquet.read_table(stored.path).column_names == ["values", "kind", "place"]
    assert store_values({"review": TEXTS, "kind": MOODS}, training_reader(label="kind")).label == "kind"
    assert store_values({"image": [*IMAGES], "y": [1, 2, 3]}, training_reader()).label == "y"
    with pytest.raises(UserError, match="did you mean 'kind'"):
        store_values(series, training_reader(label="kid"))


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
