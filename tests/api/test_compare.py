"""The result of `foveal.compare`, which shows itself."""

import pytest

from foveal.api.results.comparison_table import ComparisonTable
from tests.support.comparisons import comparison


@pytest.fixture
def result() -> ComparisonTable:
    return ComparisonTable(comparison(good=[1.5, 1.51, 1.52], bad=[1.6, 1.61, 1.625]))


def test_prints_what_the_command_prints(result: ComparisonTable) -> None:
    lines = str(result).splitlines()
    assert lines[0] == "notes.txt: good is best"
    assert "paired differences over seeds" in lines
    assert f"conclusions: {result.conclusions}" in lines
    assert lines[-2].startswith("caveat: ")


def test_a_notebook_shows_the_same_tables(result: ComparisonTable) -> None:
    shown = result._repr_html_()
    assert shown.startswith(
        "<p>notes.txt: good is best</p><p>test loss in nats per token, mean over seeds</p>"
    )
    assert shown.count("<table>") == 3
    assert "<td>good - bad</td>" in shown
    assert "p &lt; 0.001" in shown


def test_has_a_row_for_each_model_and_each_pair(result: ComparisonTable) -> None:
    frame = result.to_pandas()
    assert [*frame["model"]] == ["good", "bad"]
    assert [*frame["loss"]] == pytest.approx([1.51, 1.6117], abs=1e-4)
    assert "runs" not in frame
    (pair,) = result.differences
    assert (pair["first"], pair["second"], pair["verdict"]) == ("good", "bad", "told apart")
    assert result.picture.payload.title == "notes.txt: good is best"
