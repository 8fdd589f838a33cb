"""The comparison of default commands with ten lines: splits, scores, and rows of the table."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import defaults
from benchmarks.defaults_data import DATA_SETS
from benchmarks.defaults_data.series import write_ts
from benchmarks.defaults_data.splits import hold_out, write_sentences, write_texts
from benchmarks.ten_lines.scores import Score, accuracy, entity_f1
from foveal.data.core.rows import Row
from foveal.data.series.series_files import read_series
from foveal.data.text.conll import read_tagged


def test_a_quarter_of_each_label_is_held_out_whatever_the_order() -> None:
    rows = [(f"text {i}", "ab"[i % 5 == 0]) for i in range(100)]
    splits = hold_out(rows + rows[:7], lambda row: row[0], lambda row: row[1])
    assert {split: Counter(label for _, label in part) for split, part in splits.items()} == {
        "train": {"a": 60, "b": 15},
        "test": {"a": 20, "b": 5},
    }
    assert not {*splits["train"]} & {*splits["test"]}
    assert splits == hold_out(rows[::-1], lambda row: row[0], lambda row: row[1])
    fewer = hold_out(rows, lambda row: row[0], lambda row: row[1], most=8)
    assert {split: len(part) for split, part in fewer.items()} == {"train": 12, "test": 4}


def test_the_interval_of_a_share_is_wilsons() -> None:
    low, high = Score(0.8, 175).interval()
    assert (low, high) == pytest.approx((0.7346, 0.8525), abs=2e-4)
    assert Score(1.0, 150).interval()[1] == pytest.approx(1)
    assert accuracy(["a", "b"], ["a", "c"]) == Score(0.5, 2)


def test_entities_count_whole() -> None:
    gold = [["B-LOC", "I-LOC", "O", "B-ORG", "B-ORG"]]
    assert entity_f1(gold, gold) == Score(1.0, 3)
    assert entity_f1([["B-LOC", "O", "O", "B-ORG", "I-ORG"]], gold) == Score(0.0, 3)
    assert entity_f1([["I-LOC", "I-LOC", "O", "O", "O"]], gold) == Score(0.5, 3)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    series = [np.array([[1.5, 2], [3, 4], [5, 6]]), np.array([[7.0, 8]])]
    write_ts(tmp_path / "train.ts", "Two", series, ["x", "y"])
    rows = [row for row in read_series(tmp_path / "train.ts") if isinstance(row, Row)]
    assert [row.fields["label"] for row in rows] == ["x", "y"]
    for row, values in zip(rows, series, strict=True):
        np.testing.assert_array_equal(row.fields["values"], values)
    sentences: dict[str, list[Any]] = {"train": [[("a", "X"), ("b", "Y")], [("c", "X")]]}
    write_sentences(sentences, tmp_path)
    tagged = [row for row in read_tagged(tmp_path / "train.conllu", "upos") if isinstance(row, Row)]
    assert [list(zip(row.fields["tokens"], row.fields["tags"], strict=True)) for row in tagged] == sentences[
        "train"
    ]
    write_texts({"test": [('two\nlines, "quoted"', "l")]}, tmp_path)
    with (tmp_path / "test.csv").open(newline="", encoding="utf-8") as file:
        assert [*csv.DictReader(file)] == [{"text": 'two\nlines, "quoted"', "label": "l"}]


def test_seven_of_fifteen_are_held_out() -> None:
    held = [one for one in DATA_SETS.values() if one.held_out]
    assert (len(DATA_SETS), len(held)) == (18, 7)


def test_a_table_says_ahead_equal_behind_and_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = {"SVC": {"value": 0.8, "count": 100}, "other": {"value": 0.5, "count": 100}}

    def row(score: float) -> str:
        result = {"lines": lines, "ours": [{"score": score, "minutes": 1.0}]}
        return defaults.row("texts", DATA_SETS["drugs"], result).split(" | ")[-1]

    assert [row(score) for score in (0.95, 0.79, 0.74, 0.5)] == [
        "ahead |",
        "equal |",
        "equal, 6.0 points below |",
        "behind, 30.0 points below |",
    ]
    monkeypatch.setattr(defaults, "prepare", lambda *_: 1 / 0)
    result = defaults.measure(DATA_SETS["drugs"], tmp_path, tmp_path, 1)
    assert "error: ZeroDivisionError" in defaults.row("texts", DATA_SETS["drugs"], result)


def test_results_are_kept_and_errors_are_not(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    assert "error" in defaults._cached(path, lambda: 1 / 0)
    assert defaults._cached(path, lambda: {"score": 1}) == {"score": 1}
    assert defaults._cached(path, lambda: {"score": 2}) == {"score": 1} == json.loads(path.read_text())
