"""Labelled series as examples: what a model is given, what is kept for later, and what is skipped."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveal.config import DataConfig
from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.core.examples import Examples, RaggedArray
from foveal.data.core.rows import SkippedRow
from foveal.data.core.split_data import SplitData
from foveal.data.open import open_path
from foveal.data.pairs.pair import PairFormat
from foveal.tasks.infer import infer_task
from tests.support.pair_formats import SERIES_LABEL, SERIES_LABELS

CONFIG = DataConfig(max_length=9, valid_fraction=0.2, test_fraction=0.2)
DATA_FORMATS = {"label": SERIES_LABEL, "labels": SERIES_LABELS}


def series(count: int = 12, channels: int = 2, seed: int = 0) -> list[np.ndarray]:
    """Of 3 to 6 steps, the channels of different mean and deviation."""
    draw = np.random.default_rng(seed)
    scales = np.arange(1, channels + 1)
    return [
        ((draw.normal(size=(3 + number % 4, channels)) + 5) * scales).astype(np.float32)
        for number in range(count)
    ]


def write(path: Path, field: str = "label", rows: list[np.ndarray] | None = None, names: str = "ab") -> str:
    """JSON lines with a label in turn for each series, or for each of its steps."""
    lines = []
    for number, values in enumerate(series() if rows is None else rows):
        turn = [names[(number + step) % len(names)] for step in range(len(values))]
        label = {"label": turn[0]} if field == "label" else {"labels": turn} if field else {}
        lines.append(json.dumps({"values": values.tolist(), **label}))
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def prepared(data_format: PairFormat, data: str, valid: str | None = None, **settings: Any) -> Any:
    config = CONFIG.model_copy(update=settings)
    return prepare_examples.prepare_examples(data_format, data, valid, None, config, print)


def column(split: SplitData[Examples], name: str) -> RaggedArray:
    found = split.examples.columns[name]
    assert isinstance(found, RaggedArray)
    return found


def test_each_series_can_be_standardised_by_itself(tmp_path: Path) -> None:
    """Each channel of each series has mean 0 and deviation 1, and 0 where it is constant."""
    rows = [*series(), np.full((4, 2), 7, np.float32)]
    data = write(tmp_path / "a.jsonl", rows=rows)
    config = CONFIG.series.model_copy(update={"standardize": "series"})
    found = prepared(SERIES_LABEL, data, valid=data, series=config)
    for split in (found.train, found.held_out):
        source = column(split, "source")
        for number, values in enumerate(rows[:-1]):
            expected = (values - values.mean(0)) / values.std(0)
            assert np.allclose(source[number], expected, atol=1e-5)
        assert not source[len(rows) - 1].any()


@pytest.mark.parametrize("field", DATA_FORMATS)
def test_a_model_is_given_standardised_channels_and_numbers(tmp_path: Path, field: str) -> None:
    data_format, rows = DATA_FORMATS[field], series()
    data = write(tmp_path / "a.jsonl", field)
    found = prepared(data_format, data, valid=data)
    train = found.train
    assert train.sources == [f"{data}, line {number}" for number in range(1, 13)]
    assert train.lengths == [len(values) for values in rows]
    source = column(train, "source")
    steps = np.concatenate(rows)
    assert source.values.dtype == np.float32
    assert np.allclose(source.values, (steps - steps.mean(0)) / steps.std(0), atol=1e-5)
    assert found.processor.target.labels == ("a", "b")
    turns = [[(number + step) % 2 for step in range(len(values))] for number, values in enumerate(rows)]
    if field == "label":
        assert train.references == ["ab"[turn[0]] for turn in turns]
        assert train.examples.columns["label"].tolist() == [turn[0] for turn in turns]
    else:
        assert train.references == [["ab"[number] for number in turn] for turn in turns]
        assert [column(train, "target")[row].tolist() for row in range(12)] == turns
        assert [column(train, "places")[row].tolist() for row in range(12)] == [
            [*range(len(values))] for values in rows
        ]


@pytest.mark.parametrize("field", DATA_FORMATS)
def test_what_is_kept_reads_new_series_alike(tmp_path: Path, field: str) -> None:
    """Labelled ones as in training, and ones without labels, to be predicted."""
    data_format = DATA_FORMATS[field]
    data = write(tmp_path / "a.jsonl", field)
    found = prepared(data_format, data, valid=data)
    for name, content in data_format.files(found.processor).items():
        (tmp_path / name).write_bytes(content)
    opened = data_format.load_processor(tmp_path)
    assert opened == found.processor
    again, facts = prepare_examples.prepare_eval_examples(data_format, data, CONFIG, opened, print)
    assert np.array_equal(column(again, "source").values, column(found.train, "source").values)
    assert facts["sha256"] == found.facts["parts"]["train"]["sha256"]
    bare = write(tmp_path / "bare.jsonl", "")
    _, examples, _ = prepare_examples.read_unlabeled(data_format, bare, opened, CONFIG, print)
    assert set(examples.columns) == ({"source"} if field == "label" else {"source", "places"})
    asked = examples.columns["source"]
    assert isinstance(asked, RaggedArray)
    assert np.array_equal(asked.values, column(again, "source").values)
    (tmp_path / "labels.json").write_text("[")
    with pytest.raises(UserError, match=r"labels\.json: damaged"):
        data_format.load_processor(tmp_path)


def test_equal_series_fall_on_the_same_side(tmp_path: Path) -> None:
    """By their values alone: neither names nor labels play a role."""
    rows = series(30)
    found = prepared(SERIES_LABEL, write(tmp_path / "a.jsonl", rows=[*rows, *rows], names="abc"))
    sides = [set(part.content_hashes) for part in (found.train, found.valid, found.test)]
    assert sum(map(len, sides)) == len(set().union(*sides)) == 30
    assert sum(map(len, (found.train, found.valid, found.test))) == 60


def skip_reasons(
    data: str, *others: str, data_format: PairFormat = DATA_FORMATS["label"], **settings: Any
) -> list[str]:
    found = prepared(data_format, data, *others, **settings)
    assert all(isinstance(row, SkippedRow) for row in found.skipped)
    return [row.reason for row in found.skipped]


def test_what_does_not_fit_is_skipped(tmp_path: Path) -> None:
    data = write(tmp_path / "a.jsonl")
    rows = series(4)
    rows[1] = np.tile(rows[1], (4, 1))
    rows[2] = np.full((3, 2), np.nan, np.float32)
    more = write(tmp_path / "b.jsonl", rows=rows, names="abac")
    assert skip_reasons(data, more) == [
        "a value is missing or not finite; fill it in",
        "16 steps, and data.max_length=9: train with more, or cut the series",
        "the label 'c' is not among those of training",
    ]
    steps = write(tmp_path / "a.jsonl", "labels")
    more = write(
        tmp_path / "b.jsonl", "labels", rows=[np.ones((n, 2), np.float32) for n in (2, 3)], names="abc"
    )
    assert skip_reasons(steps, more, data_format=DATA_FORMATS["labels"]) == [
        "the label 'c' is not among those of training"
    ]
    data = write(tmp_path / "a.jsonl", rows=[*series(), np.ones((10, 2), np.float32)])
    assert skip_reasons(data, data)[:1] == [
        "10 steps, and data.max_length=9: train with more, or cut the series"
    ]


def test_statistics_are_those_of_what_is_trained_on(tmp_path: Path) -> None:
    """What is too long, or held out, takes no part in them."""
    rows = series()
    data = write(tmp_path / "a.jsonl", rows=[*rows, np.full((10, 2), 1e6, np.float32)])
    other = write(tmp_path / "b.jsonl", rows=[1e3 * values for values in rows])
    mean = prepared(SERIES_LABEL, data, other).processor.source.mean
    assert mean == pytest.approx(np.concatenate(rows).astype(np.float64).mean(0).tolist())


def refusal(data_format: PairFormat, data: str, valid: str | None = None, **settings: Any) -> str:
    with pytest.raises(UserError) as caught:
        prepared(data_format, data, valid, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_refused_in_one_line(tmp_path: Path) -> None:
    data, one, each = tmp_path / "a.jsonl", DATA_FORMATS["label"], DATA_FORMATS["labels"]
    told = refusal(one, write(data, names="a"))
    assert "series to train on have the label 'a': at least two classes are needed" in told
    told = refusal(one, write(data, "labels"))
    assert "has a label for each step, and one for the whole series is needed; fix the file, or train" in told
    assert "has one label for the whole series, and one for each step is needed" in refusal(each, write(data))
    assert "line 1: has no labels, and one for each step is needed" in refusal(each, write(data, ""))
    assert "no series can be used, the first: " in refusal(one, write(data), max_length=2)
    other = write(tmp_path / "b.jsonl", rows=series(channels=3))
    assert "3 channels, and the model reads 2; give that many" in refusal(one, str(data), other)
    data.write_text("")
    assert "a.jsonl: no usable row" in refusal(one, str(data))


@pytest.mark.parametrize("field", DATA_FORMATS)
def test_questions_that_the_model_cannot_read_are_skipped(tmp_path: Path, field: str) -> None:
    data_format = DATA_FORMATS[field]
    processor = prepared(data_format, write(tmp_path / "a.jsonl", field)).processor
    good, told = np.ones((5, 2), np.float32), list[str]()
    for rows, why in (
        (series(channels=3)[:1], "3 channels, and the model reads 2"),
        ([np.ones((10, 2), np.float32)], "10 steps, and data.max_length=9"),
    ):
        data = write(tmp_path / "b.jsonl", "", rows)
        with pytest.raises(UserError, match=f"no readable source: .*line 1: {why}"):
            prepare_examples.read_unlabeled(data_format, data, processor, CONFIG, print)
    data = write(tmp_path / "b.jsonl", "", [*rows, good])
    (row,), examples, skipped = prepare_examples.read_unlabeled(
        data_format, data, processor, CONFIG, told.append
    )
    assert (row.location, len(examples), len(skipped)) == (f"{data}, line 2", 1, 1)
    assert told.pop().startswith(f"skipped: {data}, line 1: {why}")


# What a file is for.


TS = "@problemName Small\n@classLabel true a b\n@data\n1,2:3,4:a\n"


def test_the_task_is_seen_from_the_labels(tmp_path: Path) -> None:
    for field, task in (("label", "series-classification"), ("labels", "series-tagging")):
        assert infer_task(open_path(write(tmp_path / "a.jsonl", field)), {}).name == task
    x = np.arange(12.0).reshape(2, 3, 2)
    for shape, task in (
        ((2,), "series-classification"),
        ((2, 3), "series-tagging"),
        (None, "series-classification"),
    ):
        targets: dict[str, Any] = {"y": np.zeros(shape, int)} if shape else {}
        np.savez(tmp_path / "a.npz", x=x, **targets)
        assert infer_task(open_path(str(tmp_path / "a.npz")), {}).name == task
    for text in (TS, "# a note\n@timestamps true\n@Data\n1:a\n"):
        (tmp_path / "a.ts").write_text(text)
        assert infer_task(open_path(str(tmp_path / "a.ts")), {}).name == "series-classification"
    (tmp_path / "b.npz").write_text("no array")
    assert infer_task(open_path(str(tmp_path / "b.npz")), {}).name == "series-classification"


def test_typescript_is_text(tmp_path: Path) -> None:
    for text in ("@Component({})\nexport class App {}\n", "", "const data = 1;\n"):
        (tmp_path / "a.ts").write_text(text)
        assert infer_task(open_path(str(tmp_path / "a.ts")), {}).name == "language-model"


def test_a_folder_of_parts(tmp_path: Path) -> None:
    (tmp_path / "train.ts").write_text(TS + "1,2:3,4:b\n")
    (tmp_path / "test.ts").write_text(TS)
    assert infer_task(open_path(str(tmp_path)), {}).name == "series-classification"
    found = prepared(SERIES_LABEL, str(tmp_path))
    assert (len(found.train), found.valid, len(found.test)) == (2, None, 1)
