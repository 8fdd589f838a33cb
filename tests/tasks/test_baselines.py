"""A baseline beside each score: of the right rows, by the task's own metric, and told first if not beaten."""

import json
from pathlib import Path

import pytest

from tests.support import labeled_images, small_series
from tests.support.command_line import succeed
from tests.support.small_texts import write_labels, write_tones


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def train(data: str, *arguments: str) -> tuple[dict[str, object], str]:
    told = succeed("train", data, *arguments, "--run", "run", "--json")
    return json.loads(told.out), told.err


def labeled_tones() -> str:
    write_tones("tones")
    table = Path("tones/metadata.csv")
    table.write_text(table.read_text().replace("file_name,text", "file_name,label"))
    return "tones"


def series() -> str:
    small_series.write_ts()
    return "slopes.ts"


def images() -> str:
    labeled_images.write_images()
    return "squares"


def texts() -> str:
    write_labels()
    return "labels.csv"


def test_glimpses_have_that_of_images() -> None:
    result, _ = train(images(), "--model", "glimpses", "--budget", "1steps")
    baseline = result["baseline"]
    assert isinstance(baseline, dict)
    assert baseline["name"] in ("a linear classifier of 16 x 16 pixels", "the most frequent label")


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (series, "summary statistics"),
        (images, "16 x 16 pixels"),
        (texts, "tokens and pairs of tokens"),
        (labeled_tones, "summary statistics"),
    ],
)
def test_a_linear_classifier_of_simple_features(write: object, name: str) -> None:
    assert callable(write)
    result, told = train(write(), "--budget", "1steps")
    baseline = result["baseline"]
    assert isinstance(baseline, dict)
    assert baseline["name"] in (f"a linear classifier of {name}", "the most frequent label")
    assert 0 <= baseline["accuracy"] <= 1
    assert "baseline" in told


def test_the_most_frequent_label_is_that_of_the_training_rows() -> None:
    lines = [f"same words,{'rare' if row % 4 == 0 else 'often'}" for row in range(80)]
    lines = [f"{row} {line}" for row, line in enumerate(lines)]
    Path("train.csv").write_text("\n".join(["text,label", *lines]))
    Path("test.csv").write_text("text,label\na,often\nb,often\nc,often\nd,rare\n")
    result, _ = train("train.csv", "--test", "test.csv", "--budget", "1steps")
    assert result["baseline"] == {"name": "the most frequent label", "accuracy": 0.75}


def test_a_model_that_is_no_better_is_told_first() -> None:
    small_series.write_ts()
    _, told = train("slopes.ts", "--budget", "1steps", "optimizer.lr=1e-9")
    warning = told.index("this model is no better than a linear classifier of summary statistics")
    assert warning < told.index("\nscore ")


def test_a_model_that_is_better_is_not() -> None:
    small_series.write_ts()
    _, told = train("slopes.ts")
    assert "no better" not in told
