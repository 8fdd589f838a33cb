"""Student's t against SciPy, and the interval of a mean against its coverage."""

import numpy as np
import pytest

from foveal.metrics.student_t import mean_interval, t_p_value, t_quantile

stats = pytest.importorskip("scipy.stats")
DEGREES = (1, 2, 3, 4, 5, 10, 29, 200)


@pytest.mark.parametrize("degrees", DEGREES)
def test_equals_scipy(degrees):
    for t in np.linspace(-30, 30, 61):
        assert t_p_value(t, degrees) == pytest.approx(2 * stats.t.sf(abs(t), degrees), abs=1e-12)
    for outside in (0.2, 0.05, 0.001):
        wanted = stats.t.ppf(1 - outside / 2, degrees)
        assert t_quantile(degrees, outside) == pytest.approx(wanted, rel=1e-9)


def test_mean_is_that_of_a_t_test():
    values = [1.2, 1.5, 1.1, 1.9]
    result = stats.ttest_1samp(values, 0)
    assert mean_interval(values) == pytest.approx(
        (result.statistic * stats.sem(values), *result.confidence_interval(), result.pvalue)
    )


def test_equal_values_have_no_spread():
    assert mean_interval([0.0, 0.0, 0.0]) == (0, 0, 0, 1)
    assert mean_interval([2.0, 2.0, 2.0]) == (2, 2, 2, 0)


def test_covers_the_true_mean_as_often_as_it_says():
    draws = np.random.default_rng(0).normal(3, 1, (4000, 3))
    intervals = [mean_interval(row) for row in draws.tolist()]
    assert np.mean([each.low < 3 < each.high for each in intervals]) == pytest.approx(0.95, abs=0.01)
