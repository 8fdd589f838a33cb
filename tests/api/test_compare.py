"""The result of `foveal.compare`, which shows itself."""

import pytest

import foveal.commands.compare as command
from foveal.api.results.comparison_table import ComparisonTable
from tests.support.comparisons import comparison


@pytest.fixture
def result() -> ComparisonTable:
    return ComparisonTable(comparison(good=[1.5, 1.51, 1.52], bad=[1.6, 1.61, 1.625]))


def test_prints_what_the_command_prints(result: ComparisonTable, capsys: pytest.CaptureFixture[str]) -> None:
    shown = str(result)
    assert shown.splitlines()[0] == "notes.txt: good is best"
    assert "paired differences over seeds" in shown.splitlines()
    command._print(result.comparison, None, json=False)
    assert capsys.readouterr().out.split() == shown.split()


def test_a_notebook_shows_the_same_tables(result: ComparisonTable) -> None:
    shown = result._repr_html_()
    assert shown.startswith("<p><b>notes.txt: good is best</b></p><table>")
    assert "<caption>test loss in nats per token, mean over seeds</caption>" in shown
    assert shown.count("<table>") == 4  # with that of the facts
    assert "data:image/png;base64," in shown
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
