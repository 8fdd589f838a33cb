"""A baseline beside each score: of the right rows, by the task's own metric, and told first if not beaten."""

import json
from pathlib import Path

import pytest
import torch

from foveal.inspection.confusion import view
from foveal.tasks.shapes import label_baseline, likeliest_labels
from tests.support import labeled_images, small_series
from tests.support.command_line import run_command, succeed
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


def test_too_many_labels_have_no_linear_classifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory grows with rows times labels. The line of the baseline says so."""
    write_labels()
    monkeypatch.setattr(label_baseline, "MAX_TARGETS", 100)
    result, told = train("labels.csv", "--budget", "1steps")
    baseline = result["baseline"]
    assert isinstance(baseline, dict)
    assert baseline["name"] == "the most frequent label (2 labels are too many for a linear classifier)"
    assert "2 labels are too many" in told


def test_likeliest_labels_are_sorted_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of equals comes first, whatever the number of places in a chunk."""
    logits = torch.randint(5, (7, 3000), generator=torch.Generator().manual_seed(0)).float()
    whole = likeliest_labels.likeliest_labels(logits, 4)
    assert [label for label, _ in whole[0]] == logits[0].eq(4).nonzero()[:4, 0].tolist()
    monkeypatch.setattr(likeliest_labels, "LOGITS_SORTED", 6000)
    assert likeliest_labels.likeliest_labels(logits, 4) == whole
    monkeypatch.setattr(likeliest_labels, "LOGITS_SORTED", 1)
    assert likeliest_labels.likeliest_labels(logits, 4) == whole


@pytest.mark.slow
def test_two_thousand_labels_are_trained_scored_and_predicted() -> None:
    """Above the number of classes from which all logits are never in memory together."""
    rows = [f"word{label} number{label},label{label}" for label in range(2000) for _ in range(3)]
    rows = [f"{row % 3} {line}" for row, line in enumerate(rows)]
    Path("many.csv").write_text("\n".join(["text,label", *rows]))
    small = ("model.encoder.width=8", "model.encoder.embedding_width=8", "data.vocab_size=300")
    result, told = train("many.csv", *small, "data.batch_tokens=2000", "--budget", "1steps")
    baseline = result["baseline"]
    assert isinstance(baseline, dict)
    assert "too many for a linear classifier" in str(baseline["name"])
    assert "task        text-classification: 1,9" in told  # all rows of a few labels are held out
    Path("new.txt").write_text("0 word1 number1\n1 word2 number2\n")
    assert len(succeed("predict", "run", "new.txt", "--top", "3").out.splitlines()) >= 2


def test_a_confusion_matrix_of_too_many_labels_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    train(texts(), "--budget", "1steps", "model.encoder.width=8")
    monkeypatch.setattr(view, "MOST_LABELS", 1)
    told = run_command("inspect", "run", "confusion", "--json")
    assert told.code == 2
    assert " labels occur, and a confusion matrix has 1 at most" in told.err
