"""Values of X and y that can't be used: one line, a `foveal.UserError` and what scikit-learn expects."""

from typing import Any

import numpy as np
import pandas
import pytest
from sklearn.exceptions import NotFittedError

import foveal
from foveal.sklearn import ImageClassifier, SeriesClassifier, TextClassifier

TEXTS, LABELS = [f"a film, {row % 3}" for row in range(12)], [row % 2 for row in range(12)]
SERIES, IMAGES = np.arange(120.0).reshape(12, 10), np.zeros((12, 8, 8), np.uint8)
HOLES = SERIES.copy()
HOLES[[2, 5], 3] = np.nan, np.inf


@pytest.mark.parametrize(
    ("estimator", "X", "y", "message"),
    [
        (TextClassifier(), TEXTS, LABELS[:-1], "X has 12 rows, and y 11; give a label for each row"),
        (TextClassifier(), TEXTS, ["a"] * 12, "y of 12 samples has 1 class ('a'); give 2 classes or more"),
        (TextClassifier(), TEXTS, range(12), "y has 12 classes in 12 rows; give two rows or more of a class"),
        (TextClassifier(), TEXTS[:1], [1], "y of 1 sample has 1 class ('1')"),
        (TextClassifier(), [], [], "X has 0 samples"),
        (TextClassifier(), [*TEXTS[:-1], None], LABELS, "X, row 11: None, no text; give a text in each row"),
        (TextClassifier(), [*TEXTS[:4], *range(8)], LABELS, "X, rows 4, 5, 6, 7, 8 and 3 more: int, no text"),
        (TextClassifier(), "a film", LABELS, "X is a single text: give a list of texts"),
        (TextClassifier(), 3, LABELS, "X is int: give a list of texts"),
        (
            TextClassifier(),
            pandas.DataFrame({"a": TEXTS, "b": TEXTS}),
            LABELS,
            "X is 2-D (12, 2): give",
        ),
        (TextClassifier(), TEXTS, None, "requires y to be passed, but the target y is None"),
        (TextClassifier(), TEXTS, [*map(str, LABELS[:-1]), np.nan], "NaN or None (row 11)"),
        (TextClassifier(), TEXTS, np.array([*map(str, LABELS[:-1]), None]), "NaN or None (row 11)"),
        (TextClassifier(), TEXTS, np.array([*map(str, LABELS[:-1]), 1], object), "several types (int, str)"),
        (TextClassifier(), TEXTS, np.linspace(0, 1, 12), "Unknown label type: continuous"),
        (SeriesClassifier(), HOLES, LABELS, "X, rows 2, 5: NaN or inf; fill in the missing numbers"),
        (SeriesClassifier(), [*HOLES[:-1], HOLES[-1, :4]], LABELS, "X, rows 2, 5: NaN or inf"),
        (SeriesClassifier(), SERIES[0], LABELS, "X is 1-D (10,): give series (N, T) or (N, T, C)"),
        (SeriesClassifier(), SERIES[:0], [], "0 sample(s)"),
        (SeriesClassifier(), TEXTS, LABELS, "X is 1-D (12,)"),
        (SeriesClassifier(), [*SERIES[:-1], SERIES[:3, :2]], LABELS, "X, row 11: 2 channels, and 1 in row 0"),
        (SeriesClassifier(), [*SERIES[:-1], ["a"]], LABELS, "X, row 11: no series of numbers"),
        (
            ImageClassifier(),
            IMAGES.reshape(12, 64),
            LABELS,
            "X is 2-D (12, 64): give images",
        ),
        (ImageClassifier(), [*IMAGES[:-1], None], LABELS, "X, row 11: NoneType, no image"),
        (
            ImageClassifier(),
            [*IMAGES[:-1], [[1, 2], [3]]],
            LABELS,
            "X, row 11: list of rows of different",
        ),
        (ImageClassifier(), ["a.png"] * 12, LABELS, "X, row 0: str, no image"),
        (ImageClassifier(), 3, LABELS, "X is int: give a list or an array of images"),
        (ImageClassifier(), IMAGES + 9.0, LABELS, "neither from 0 to 1 nor from 0 to 255"),
        (ImageClassifier(), IMAGES + np.nan, LABELS, "X, row 0: its values go from nan to nan"),
    ],
)
def test_fit(estimator: Any, X: Any, y: Any, message: str) -> None:
    with pytest.raises(foveal.UserError) as error:
        estimator.fit(X, y)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert isinstance(error.value, ValueError | TypeError)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"model": "text-ngram"}, "did you mean 'text-ngrams'"),
        ({"epochs": 1, "budget": "1m"}, "give one of them"),
        ({"settings": ["a"]}, "settings is list: give a dict"),
        ({"settings": {"model.width": 1j}}, "model.width: complex; give a text, a number"),
        ({"settings": {"model.wdth": 1}}, "did you mean 'model.width'"),
        ({"run": "/proc/run"}, "/proc/run: can't create a folder"),
    ],
)
def test_parameters(parameters: dict[str, Any], message: str) -> None:
    estimator = TextClassifier().set_params(**parameters)
    with pytest.raises(foveal.UserError) as error:
        estimator.fit(TEXTS, LABELS)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_predict() -> None:
    series = SeriesClassifier().fit(SERIES, LABELS)
    for X, message in {
        "other steps": (SERIES[:, :4], "X has 4 features, but SeriesClassifier is expecting 10 features"),
        "other lengths": ([SERIES[0], SERIES[1, :3]], "X has series of different lengths"),
        "other channels": (np.stack([SERIES, SERIES], 2), "2 channels, and 1 in fit"),
        "holes": (HOLES, "rows 2, 5"),
    }.values():
        with pytest.raises(foveal.UserError) as error:
            series.predict(X)
        assert message in str(error.value)


@pytest.mark.parametrize("estimator", [TextClassifier(), SeriesClassifier(), ImageClassifier()])
@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_before_fit(estimator: Any, method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(estimator, method)([])


def test_after_a_fit_that_failed() -> None:
    estimator = SeriesClassifier()
    with pytest.raises(foveal.UserError):
        estimator.fit(SERIES, [1] * 12)
    with pytest.raises(NotFittedError):
        estimator.predict(SERIES)
