"""`foveal.metrics`: every metric by name, and the examples in the docstrings."""

import pytest

from foveal import metrics
from tests.support.docstring_examples import examples, failures, names_for_the_type_checker

NAMES = {name: metrics._MODULES[name] for name in sorted(metrics._MODULES)}
NO_EXAMPLE = {"ConfusionMatrix", "MetricResult", "make_report"}


def test_names_for_the_type_checker_are_those_that_are_imported() -> None:
    assert names_for_the_type_checker(metrics) == NAMES
    assert dir(metrics) == list(NAMES)


def test_no_name_is_that_of_a_file() -> None:
    """Once the file is imported, the name would be the module."""
    assert not [name for name in NAMES if f"foveal.metrics.{name}" in NAMES.values()]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NO_EXAMPLE])
def test_examples(name: str) -> None:
    wanted = examples(getattr(metrics, name))
    assert wanted
    assert not failures(name, wanted, {"metrics": metrics})


def test_results_are_short_in_print() -> None:
    assert repr(metrics.accuracy(["a"], ["a"])).startswith("MetricResult(name='accuracy', value=1.0, higher")
    with pytest.raises(AttributeError, match="no attribute 'blue'"):
        metrics.blue  # noqa: B018
