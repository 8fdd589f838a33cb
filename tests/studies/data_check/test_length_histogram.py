"""The picture of the lengths of the rows: their unit, their counts, and their bins."""

import numpy as np
import pytest

from foveal.inspection.panels import Histograms
from foveal.studies.data_check.check import DataCheck


def histogram(lengths: list[float], unit: str = "words") -> Histograms:
    check = DataCheck("x.csv", "task", {"train": len(lengths)}, (), {}, "row", np.array(lengths, float), unit)
    (panel,) = check.payload().panels
    assert isinstance(panel, Histograms)
    return panel


def test_lengths_have_their_unit_and_are_all_counted() -> None:
    panel = histogram([3, 5, 5, 8, float("nan")])
    assert (panel.x_label, panel.y_label) == ("length of the source in words", "rows")
    assert panel.edges.tolist() == [3, 4, 5, 6, 7, 8, 9]
    assert panel.histograms[0].counts == (1, 0, 2, 0, 0, 1)
    assert not panel.log_x


@pytest.mark.parametrize("longest", [45, 200, 1000])
def test_equally_many_of_each_length_make_bins_of_equal_height(longest: int) -> None:
    lengths = np.repeat(np.arange(1, longest + 1), 2).astype(float)
    panel = histogram(lengths.tolist())
    *whole, last = panel.histograms[0].counts
    assert {*whole} == {2 * int(panel.edges[1] - panel.edges[0])}
    assert 0 < last <= whole[0]


def test_the_axis_is_logarithmic_if_one_is_far_from_the_others() -> None:
    panel = histogram([17, 30, 31, 31, 32, 33, 3120], "characters")
    assert panel.log_x
    assert (panel.edges == panel.edges.round()).all()
    assert (np.diff(panel.edges) > 0).all()
    assert sum(panel.histograms[0].counts) == 7
    assert np.count_nonzero(panel.histograms[0].counts) > 3, "the usual ones are not in a single bin"


@pytest.mark.parametrize("lengths", [[5.0], [2.5, 2.5], [0.0, 4.0, 90.0, 1.0], [0.5, 0.6, 70.25]])
def test_every_length_is_in_a_bin(lengths: list[float]) -> None:
    panel = histogram(lengths, "seconds")
    assert sum(panel.histograms[0].counts) == len(lengths)
    assert (np.diff(panel.edges) > 0).all()


def test_rows_without_known_lengths_have_no_picture() -> None:
    check = DataCheck("x.csv", "task", {"train": 1}, (), {}, "row", np.array([float("nan")]), "seconds")
    assert not any(isinstance(panel, Histograms) for panel in check.payload().panels)
