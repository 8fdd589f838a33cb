"""Series from their three forms, what is skipped and why, and the statistics of channels."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveal.core.errors import UserError
from foveal.data.core.rows import Row, SkippedRow
from foveal.data.core.standardize import STATISTICS_FILE, Statistics
from foveal.data.images.image_arrays import read_images
from foveal.data.open import open_path
from foveal.data.series.series_files import read_series

TS = """\
%# two channels
@problemName Small
@timeStamps false
@univariate false
@equalLength false
@classLabel true left right
@data
1,2,3:4,5,6:left
-1.5e0, 2:0 ,1:right
"""


def read(path: Path) -> list[Row | SkippedRow]:
    return [*read_series(path)]


def skipped_rows(path: Path) -> list[str]:
    """What was skipped, in order; whatever it is, its place is named."""
    found = [row for row in read(path) if isinstance(row, SkippedRow)]
    assert all(row.location.startswith(str(path)) and "\n" not in row.reason for row in found)
    return [f"{row.location.removeprefix(f'{path}, ')}: {row.reason}" for row in found]


def refusal(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def same(row: Row | SkippedRow, location: str, values: list[list[float]], **labels: object) -> None:
    assert isinstance(row, Row)
    assert row.location.endswith(location)
    assert row.fields.keys() == {"values", *labels}
    assert row.fields["values"].dtype == np.float32
    assert row.fields["values"].tolist() == values
    assert {name: row.fields[name] for name in labels} == labels


# .ts


def test_ts(tmp_path):
    path = tmp_path / "a.ts"
    path.write_text(TS)
    one, two = read(path)
    same(one, "a.ts, line 8", [[1, 4], [2, 5], [3, 6]], label="left")
    same(two, "a.ts, line 9", [[-1.5, 0], [2, 1]], label="right")


def test_ts_without_labels(tmp_path):
    path = tmp_path / "a.ts"
    path.write_text("@classLabel false\n@data\n1,2:3,4\n")
    same(read(path)[0], "line 3", [[1, 3], [2, 4]])


def test_ts_rows_that_are_skipped(tmp_path):
    path = tmp_path / "a.ts"
    broken = [
        b"1,?:3,4:left",
        b"1,2:3:left",
        b"1,2:left",
        b"1,2:3,x:left",
        b"1,2:3,4:up",
        b"1,2:3,4",
        b"\xff:1:left",
    ]
    path.write_bytes(TS.encode() + b"\n".join([*broken, b"7:8:right"]))
    assert skipped_rows(path) == [
        "line 10: a value is missing or not finite; fill it in",
        "line 11: its channels differ in length; fix the series",
        "line 12: has 1 channels, and the first series 2; fix the series",
        "line 13: could not convert string to float: 'x'; fix the series",
        "line 14: its label 'up' is not among the header's; fix one of them",
        "line 15: its label '3,4' is not among the header's; fix one of them",
        "line 16: not UTF-8 at byte 0 of the line; name its encoding: data.encoding=cp1252 (Latin-1) or "
        "cp1251 (Cyrillic) or koi8_r (Cyrillic)",
    ]
    same(read(path)[-1], "line 17", [[7, 8]], label="right")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("@timeStamps false", "@timeStamps true", "line 3: @timestamps is not read"),
        ("@classLabel true left right", "@targetLabel true", "line 6: @targetlabel is not read"),
        ("@data\n", "", "line 7: neither a setting (@) nor after a line @data"),
    ],
)
def test_ts_files_that_are_refused(old, new, says, tmp_path):
    path = tmp_path / "a.ts"
    path.write_text(TS.replace(old, new))
    assert says in refusal(path)


# .npz


def test_npz(tmp_path):
    path = tmp_path / "a.npz"
    x = np.arange(12).reshape(2, 3, 2)
    np.savez(path, x=x, y=np.array([7, 3]))
    for number, row in enumerate(read(path)):
        same(row, f"series {number + 1}", x[number].tolist(), label=["7", "3"][number])
    np.savez(path, x=x, lengths=np.array([1, 3]), y=np.array(["a", "b"]))
    same(read(path)[0], "series 1", [[0, 1]], label="a")
    np.savez(path, x=x, lengths=np.array([1, 3]), y=np.array([list("abc"), list("def")]))
    one, two = read(path)
    same(one, "series 1", [[0, 1]], labels=["a"])
    same(two, "series 2", x[1].tolist(), labels=["d", "e", "f"])
    np.savez(path, x=x.reshape(6, 2), lengths=np.array([4, 2]), y=np.array([b"a", b"b"]))
    one, two = read(path)
    same(one, "series 1", [[0, 1], [2, 3], [4, 5], [6, 7]], label="a")
    same(two, "series 2", [[8, 9], [10, 11]], label="b")
    np.savez(path, x=x.reshape(6, 2), lengths=np.array([4, 2]), y=np.arange(6))
    assert [row.fields["labels"] for row in read(path) if isinstance(row, Row)] == [
        ["0", "1", "2", "3"],
        ["4", "5"],
    ]


def test_npz_series_that_are_skipped(tmp_path):
    path = tmp_path / "a.npz"
    x = np.ones((3, 2, 1))
    x[1, 1] = np.nan
    np.savez(path, x=x, lengths=np.array([2, 2, 0]), y=np.zeros(3, int))
    assert skipped_rows(path) == [
        "series 2: a value is missing or not finite; fill it in",
        "series 3: its values have the shape (0, 1); (steps, channels) is needed",
    ]
    np.savez(path, x=np.array([1.0, 1e300]).reshape(2, 1, 1))
    assert skipped_rows(path) == ["series 2: a value is missing or not finite; fill it in"]


def test_npz_files_that_are_refused(tmp_path):
    path, x, two = tmp_path / "a.npz", np.ones((2, 3, 1)), np.array([3, 3])
    for arrays, says in (
        ({"z": x}, "no array 'x' among 'z'"),
        (
            {"x": x[:, :, 0], "y": np.zeros(3)},
            "x is float64 (2, 3); needed: numbers (series, steps, channels)",
        ),
        ({"x": x.astype(str)}, "x is <U32 (2, 3, 1)"),
        ({"x": x, "lengths": two + 1}, "don't fit x"),
        ({"x": x, "lengths": two - 4}, "don't fit x"),
        ({"x": x, "lengths": two[:1]}, "don't fit x"),
        ({"x": x, "lengths": two / 2}, "lengths float64 (2,) don't fit x"),
        ({"x": x[0], "lengths": two}, "don't fit x (3, 1)"),
        ({"x": x, "y": np.zeros(3)}, "y is (3,); needed: a label per series (2,), or per step"),
    ):
        np.savez(path, **arrays)
        assert says in refusal(path)
    np.savez(path, x=np.array([[1], [2, 3]], object))
    assert "allow_pickle" in refusal(path)
    for content in (b"", b"PK\3\4 not a zip file", b"\x93NUMPY"):
        path.write_bytes(content)
        assert "not readable as .npz" in refusal(path)
    with path.open("wb") as file:
        np.save(file, x)
    assert "not readable as .npz" in refusal(path)
    assert "can't read" in refusal(tmp_path / "none.npz")


# JSON lines


def write(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))
    return path


def test_jsonl(tmp_path):
    rows = {"values": [[1, 2.5]], "label": "a"}, "", {"values": [[3, 4], [5, 6]], "label": 7}
    one, two = read(write(tmp_path / "a.jsonl", *rows))
    same(one, "line 1", [[1, 2.5]], label="a")
    same(two, "line 3", [[3, 4], [5, 6]], label="7")
    one, two = read(
        write(tmp_path / "a.jsonl", *({"values": [[n], [n]], "labels": ["x", n]} for n in (1, 2)))
    )
    same(two, "line 2", [[2], [2]], labels=["x", "2"])
    same(read(write(tmp_path / "a.jsonl", {"values": [[1]], "other": 3}))[0], "line 1", [[1]])


def test_jsonl_rows_that_are_skipped(tmp_path):
    good = {"values": [[1, 2]], "label": "a"}
    bad = [
        ("{", "not JSON"),
        ([1], "a JSON object is needed"),
        ({"label": "a"}, "a JSON object is needed"),
        ({"values": [[1, 2], [3]], "label": "a"}, "are not numbers, equally many at each step"),
        (
            {"values": [1, 2.5], "label": "a"},
            "are a flat list; write a step of one channel as [number]: [[1.5]",
        ),
        (
            {"values": [1, None], "label": "a"},
            "are a flat list with value 2 missing (fill it in); write a step",
        ),
        ({"values": [["x", 2]], "label": "a"}, "are not numbers, equally many at each step"),
        ({"values": [[10**400, 2]], "label": "a"}, "are not numbers, equally many at each step"),
        ({"values": [1, 2], "label": "a"}, "are a flat list"),
        ({"values": [], "label": "a"}, "have the shape (0,)"),
        ({"values": [[1, None]], "label": "a"}, "a value is missing"),
        ('{"values": [[1, NaN]], "label": "a"}', "a value is missing"),
        ({"values": [[1, 1e300]], "label": "a"}, "not finite"),
        ({"values": [[1, 2, 3]], "label": "a"}, "has 3 channels, and the first series 2"),
        ({"values": [[1, 2]]}, "has values, and the first series values, label"),
        ({"values": [[1, 2]], "label": "a", "labels": ["a"]}, 'has "label" and "labels"'),
        ({"values": [[1, 2]], "label": None}, "'label' is null, not text"),
        ({"values": [[1, 2]], "label": " "}, "'label' is empty"),
    ]
    path = write(tmp_path / "a.jsonl", good, *(row for row, _ in bad), good)
    found = skipped_rows(path)
    assert len(found) == len(bad)
    assert sum(isinstance(row, Row) for row in read(path)) == 2
    for number, (line, (_, says)) in enumerate(zip(found, bad, strict=True), 2):
        assert line.startswith(f"line {number}: ")
        assert says in line
    good = {"values": [[1], [2]], "labels": ["a", "b"]}
    bad_labels: list[Any] = [["a"], ["a", "b", "c"], "ab", None, ["a", None]]
    path = write(tmp_path / "a.jsonl", good, *(good | {"labels": labels} for labels in bad_labels))
    assert len(skipped_rows(path)) == len(bad_labels)


def test_other_forms_are_refused(tmp_path):
    assert ".ts, .npz, .jsonl, .json, .parquet; convert it" in refusal(tmp_path / "a.arff")
    assert "can't read" in refusal(tmp_path / "none.ts")


def test_a_file_without_a_series_is_refused(tmp_path):
    (tmp_path / "a.ts").write_text("@data\n?\n")
    assert "no usable row, the first is line 2: a value is missing" in refusal(tmp_path / "a.ts")
    (tmp_path / "a.jsonl").touch()
    assert "no usable row" in refusal(tmp_path / "a.jsonl")


# Statistics


def test_statistics_are_those_of_all_steps_together():
    chance = np.random.default_rng(0)
    rows = [chance.normal([5, -2000, 0], [1, 3, 1e-9], (n, 3)).astype(np.float32) for n in (1, 40, 0, 7, 300)]
    every = np.concatenate(rows).astype(np.float64)
    found = Statistics.from_data(iter(rows))
    np.testing.assert_allclose(found.mean, every.mean(0), rtol=1e-12)
    np.testing.assert_allclose(found.std, every.std(0), rtol=1e-10)
    plain = np.concatenate([found.standardize(row) for row in rows])
    assert plain.dtype == np.float32
    np.testing.assert_allclose(plain.mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(plain.std(0), 1, rtol=1e-5)


def test_a_constant_channel_is_not_divided_by_a_rounding_error():
    rows = [np.full((n, 2), [0.1, 0.0], np.float32) for n in (3, 5, 77_777)]
    found = Statistics.from_data(rows)
    assert found.std == (1.0, 1.0)
    np.testing.assert_allclose(found.standardize(rows[0] + 1), 1, rtol=1e-6)


def test_statistics_are_kept_to_the_last_bit(tmp_path):
    found = Statistics.from_data([np.random.default_rng(1).normal(size=(9, 4)).astype(np.float32)])
    (tmp_path / STATISTICS_FILE).write_text(found.to_json())
    assert Statistics.load(tmp_path) == found


@pytest.mark.parametrize("content", ["", "[1]", '{"mean": [1]}', '{"mean": ["x"], "deviation": [1]}'])
def test_damaged_statistics_are_named(content, tmp_path):
    (tmp_path / STATISTICS_FILE).write_text(content)
    with pytest.raises(UserError, match=r"channels\.json: damaged"):
        Statistics.load(tmp_path)


def test_missing_statistics_are_named(tmp_path):
    with pytest.raises(UserError, match=r"channels\.json: can't read: No such file"):
        Statistics.load(tmp_path)


STEPS = np.arange(12.0).reshape(4, 3)


def save(path: Path, arrays: dict[str, Any]) -> None:
    np.savez(path, **arrays)


@pytest.mark.parametrize("source", ["x", "X", "data"])
@pytest.mark.parametrize("label", ["y", "Y", "target", "labels", "label"])
@pytest.mark.parametrize("column", [False, True])
def test_npz_of_other_names_and_of_one_channel(source: str, label: str, column: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    labels = np.array(["a", "b"] * 2)
    save(path, {source: STEPS, label: labels[:, None] if column else labels})
    data = open_path(str(path))
    shape = f"{source} (4, 3) being 4 series of 3 steps of one channel"
    assert data.evidence.reason == f"a.npz is a file of series, {shape}"
    fields = [row.fields for row in read(path) if isinstance(row, Row)]
    assert [each["label"] for each in fields] == [*labels]
    assert fields[1]["values"].tolist() == [[3.0], [4.0], [5.0]]


@pytest.mark.parametrize(("channels", "may_be_pictures"), [(5, True), (3, False)])
def test_squares_of_numbers_may_be_pictures(channels: int, may_be_pictures: bool, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros((4, 5, channels)), y=np.arange(4))
    reason = open_path(str(tmp_path / "a.npz")).evidence.reason
    assert ("if they are square pictures, name the array images" in reason) == may_be_pictures


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"X": STEPS, "y": np.eye(4)}, "a column for each class becomes a label by numpy.argmax(y, 1)"),
        ({"a": STEPS}, "no array 'x' among 'a'; name the arrays of series x (series, steps, channels) and y"),
    ],
)
def test_npz_of_other_shapes_is_refused_with_what_would_do(
    arrays: dict[str, np.ndarray], words: str, tmp_path: Path
) -> None:
    save(tmp_path / "a.npz", arrays)
    assert words in refusal(tmp_path / "a.npz")


@pytest.mark.parametrize("shape", [(4, 3), (4, 20, 2)])
def test_splits_of_series_in_one_npz_are_not_taken_for_pictures(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    values = np.zeros(shape)
    np.savez(tmp_path / "a.npz", x_train=values, y_train=[0, 1] * 2, x_test=values, y_test=[0, 1] * 2)
    with pytest.raises(
        UserError, match=r"x_train .* has not the shape of pictures .* train\.npz and test\.npz"
    ):
        _ = open_path(str(tmp_path / "a.npz")).splits


@pytest.mark.parametrize("source", ["images", "X", "x", "data"])
@pytest.mark.parametrize("label", ["labels", "y", "target"])
def test_arrays_with_four_axes_are_pictures(source: str, label: str, tmp_path: Path) -> None:
    pictures = np.zeros((4, 8, 8, 3), np.uint8)
    save(tmp_path / "a.npz", {source: pictures, label: [0, 1] * 2})
    data = open_path(str(tmp_path / "a.npz"))
    assert data.kind == "images"
    assert [record["label"] for _, record in read_images(data.train, "label")] == [0, 1, 0, 1]  # type: ignore[index]
