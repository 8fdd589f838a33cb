"""Rows that tools leave in data: headers again, lines for Excel, other channels, classes of damaged files."""

import json
from pathlib import Path

import pytest

from foveal.data.core.rows import Row, SkippedRow
from foveal.data.files.tables import column_names, read_rows
from foveal.data.prepare_examples import prepare_examples
from foveal.data.series.series_files import read_series
from tests.support.class_folders import CONFIG, FOLDERS, files_by_class
from tests.support.image_folders import write_files


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("first", ["", "sep={}\n", "\ufeffSEP={}\r\n"])
def test_headers_again_are_skipped_and_a_named_separator_is_used(
    separator: str, first: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    lines = ["text|label", "a, b; c|x" if separator == "\t" else "a|x", "text|label", "b|y"]
    path.write_text(first.format(separator) + "\n".join(lines).replace("|", separator))
    assert column_names(path) == ["text", "label"]
    rows = [*read_rows(path, ["text", "label"])]
    assert [row.fields["label"] for row in rows if isinstance(row, Row)] == ["x", "y"]
    (skipped,) = [row for row in rows if isinstance(row, SkippedRow)]
    assert skipped.reason == "the names of the columns again; remove the line"


def test_most_of_the_first_series_decide_on_the_channels(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"values": [[0.5] * (2 if number % 10 else 3)] * 4, "label": "a"} for number in range(60)]
    path.write_text("\n".join(map(json.dumps, rows)))
    read = [*read_series(path)]
    assert sum(isinstance(row, Row) for row in read) == 54
    assert isinstance(read[0], SkippedRow)
    assert read[0].reason == "has 3 channels, and most series 2; fix the series"


@pytest.mark.parametrize("kind", ["pictures", "recordings", "texts"])
def test_a_class_of_damaged_files_is_named(kind: str, tmp_path: Path) -> None:
    files = files_by_class(kind)
    suffix = next(iter(files)).rpartition(".")[2]
    data = write_files(
        tmp_path / "a", files | {f"bird/{number}.{suffix}": b"\xff\x00\xff" for number in "01"}
    )
    told: list[str] = []
    prepare_examples(FOLDERS[kind].data_format, data, data, None, CONFIG, told.append)
    assert [line for line in told if "class" in line] == [f"{data}: the class bird has no readable file"]
