"""scikit-learn's own checks of estimators, as far as they fit the inputs."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from jaxtyping import config
from sklearn.exceptions import SkipTestWarning
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import estimator_checks_generator

from foveal.sklearn import ImageClassifier, SeriesClassifier, TextClassifier

EXCLUDED = {
    "check_methods_subset_invariance": "the last of 32 bits depend on the rows of a batch. Some rows of the "
    "training tie with MiniRocket's thresholds, and these bits decide.",
    "check_array_api_input": "runs only where SCIPY_ARRAY_API=1 is set before SciPy is imported",
}
"""Checks of numeric X that are not run, and why."""
SLOW = {
    "check_classifiers_classes",
    "check_classifiers_train",
    "check_estimators_dtypes",
    "check_fit_idempotent",
    "check_n_features_in",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_supervised_y_2d",
}
"""Checks that fit several times, or many rows."""
WITHOUT_X = (
    "check_estimator_cloneable",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
)
"""Checks that need no X of numbers, which texts and images are not."""


@pytest.fixture(autouse=True)
def types_unchecked() -> Iterator[None]:
    """The checks give parameters of any type, which `fit` alone may refuse."""
    before = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", before)


def name_of(check: Any) -> str:
    return str(getattr(check, "func", check).__name__)


def series_checks() -> list[Any]:
    pairs = [*estimator_checks_generator(SeriesClassifier())]
    names = [name_of(check) for _, check in pairs]
    assert {*EXCLUDED, *SLOW} <= {*names}
    return [
        pytest.param(*pair, id=name, marks=[pytest.mark.slow] * (name in SLOW))
        for name, pair in zip(names, pairs, strict=True)
        if name not in EXCLUDED
    ]


@pytest.mark.parametrize(("estimator", "check"), series_checks())
def test_series(estimator: SeriesClassifier, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the checks' own
        check(estimator)


@pytest.mark.parametrize("estimator", [TextClassifier(), ImageClassifier()], ids=["texts", "images"])
def test_texts_and_images(estimator: Any) -> None:
    with pytest.warns(SkipTestWarning, match="Can't test estimator"):  # of two_d_array=False
        assert [name_of(check) for _, check in estimator_checks_generator(estimator)] == [*WITHOUT_X[:1]]
    for check in WITHOUT_X:
        getattr(estimator_checks, check)(type(estimator).__name__, estimator)
