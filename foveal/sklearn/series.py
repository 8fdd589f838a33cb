"""X of a classifier of time series."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from foveal.sklearn.errors import InputError, list_rows, plain_input_errors

Series = NDArray[np.float64]
"""(T,) or (T, C)"""


def read_series(estimator: Any, X: Any, is_fit: bool) -> list[Series]:
    """Return the series of X.

    As scikit-learn demands, `fit` sets the estimator's `n_features_in_` to T if all series have T steps, and
    later X must have as many. `n_channels_in_` is C.

    Raises: InputError: X has another shape, or numbers that are missing or infinite.
    """
    if isinstance(getattr(X, "dtype", None), np.dtypes.ObjectDType) and X.ndim == 1:
        X = [*X]
    series = _of_different_lengths(X)
    if series is None:
        series = _of_one_length(estimator, X, is_fit)
    elif is_fit:
        for name in ("n_features_in_", "feature_names_in_"):
            vars(estimator).pop(name, None)
    elif hasattr(estimator, "n_features_in_"):
        raise InputError(
            f"X has series of different lengths, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features (steps) in each, as in fit"
        )
    if wrong := [row for row, each in enumerate(series) if not np.isfinite(each).all()]:
        rows = list_rows(wrong)
        raise InputError(f"X, {rows}: NaN or inf; fill in the missing numbers, or leave these rows out")
    if is_fit and series:
        estimator.n_channels_in_ = _channels(series[0])
    if wrong := [row for row, each in enumerate(series) if _channels(each) != estimator.n_channels_in_]:
        counts = f"{_channels(series[wrong[0]])} channels, and {estimator.n_channels_in_}"
        others = "row 0" if is_fit else "fit"
        raise InputError(f"X, {list_rows(wrong)}: {counts} in {others}; give all series as many")
    return series


def _channels(series: Series) -> int:
    return 1 if series.ndim == 1 else series.shape[1]


def _of_different_lengths(X: Any) -> list[Series] | None:
    """Return the series of a list if their lengths differ; else None."""
    if not isinstance(X, list | tuple) or not all(_is_sequence(each) for each in X):
        return None
    return None if len({*map(len, X)}) < 2 else [_series(each, row) for row, each in enumerate(X)]


def _is_sequence(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | dict)


def _series(values: Any, row: int) -> Series:
    """Return the values of a row as a series.

    Raises: InputError: they are none.
    """
    try:
        array = np.asarray(values, np.float64)
    except (ValueError, TypeError):
        raise InputError(f"X, row {row}: no series of numbers, equally many at each step") from None
    if array.ndim not in (1, 2) or not array.size:
        raise InputError(f"X, row {row}: an array {array.shape}, no series (T,) or (T, C)")
    return array


def _of_one_length(estimator: Any, X: Any, is_fit: bool) -> list[Series]:
    """Return the rows of an array (N, T) or (N, T, C), or of values that become one."""
    with plain_input_errors():
        shape = tuple(X.shape if hasattr(X, "shape") else np.asarray(X).shape)
    if len(shape) not in (2, 3):
        raise InputError(
            f"X is {len(shape)}-D {shape}: give series (N, T) or (N, T, C). Reshape your data: a single "
            "series is X.reshape(1, -1)"
        )
    with plain_input_errors():
        array = validate_data(
            estimator, X, reset=is_fit, dtype=np.float64, allow_nd=True, ensure_all_finite=False
        )
    return [*array]
