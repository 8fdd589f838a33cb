"""The moving average of a curve begins at its first value."""

import pytest

from foveal.inspection.curves.compute import SMOOTHING_DIVISOR, smooth


def test_a_moving_average_is_corrected_for_its_start() -> None:
    """Two parts of a fortieth of the run have a decay of 1/2."""
    values = [4.0, *([0.0] * (2 * SMOOTHING_DIVISOR - 1))]
    assert smooth(values)[:3] == pytest.approx([4, 4 / 3, 4 / 7])
