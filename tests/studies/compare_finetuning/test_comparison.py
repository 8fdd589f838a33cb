"""A comparison of ways to fine-tune shows itself."""

from pathlib import Path

from foveal.studies.compare_finetuning.advice import MeasuredAccuracy, Strategy
from foveal.studies.compare_finetuning.comparison import FinetuningComparison, TrainedWay
from foveal.studies.compare_finetuning.similarity import FeatureSimilarity
from foveal.ui.console import sections_text


def test_a_result_prints_its_verdict_and_its_table_and_a_notebook_shows_them() -> None:
    ways: dict[Strategy, TrainedWay] = {"head": trained_way("head", 0.8), "all": trained_way("all", 0.7)}
    similarity = FeatureSimilarity(images=110, classes=10, features=0.8, pixels=0.3)
    errors: dict[Strategy, str] = {"scratch": "it was killed"}
    result = FinetuningComparison(Path("study"), "photos", similarity, ways, errors)
    shown = repr(result)
    assert shown == str(result) == sections_text(result.sections())
    assert shown.startswith("photos: head is the best here, as advised\n")
    for line in ("head *", "80.0 %", "it was killed", "110 training images", "each way is trained once"):
        assert line in shown
    page = result._repr_html_()
    assert "<b>photos: head is the best here, as advised</b>" in page
    assert "<td>80.0 %</td>" in page
    assert "data:image/png;base64," in page


def trained_way(name: str, accuracy: float) -> TrainedWay:
    """Return a way as if it were trained."""
    measured = MeasuredAccuracy(accuracy, accuracy - 0.05, accuracy + 0.05)
    return TrainedWay(Path("study", name), "test", 20, 4.0, 0.5, measured, ((1.0, 2.0), (4.0, 0.5)))
