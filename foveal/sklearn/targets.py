"""y of a classifier: its classes, and their names in a run."""

from math import isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite

from foveal.core.errors import UserError
from foveal.data.core.classes import check_are_classes, missing_label_error
from foveal.sklearn.errors import InputError, InputTypeError, list_rows, plain_input_errors


class Targets(NamedTuple):
    """The labels of the training rows."""

    classes: NDArray[Any]
    """The classes in order, of the type that y has."""
    names: list[str]
    """The name of each class in the run."""
    ids: NDArray[np.int64]
    """The index of each row's class."""

    @property
    def labels(self) -> list[str]:
        """The label of each row in the run."""
        return [self.names[index] for index in self.ids]


def read_targets(y: Any, count: int, estimator: Any) -> Targets:
    """Return the labels y of `count` rows of X.

    Raises: InputError: y has another length, missing labels, numbers that are no classes, or a single class.
    """
    if y is None:
        raise InputError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    with plain_input_errors():
        labels = column_or_1d(y, warn=True)
    if len(labels) != count:
        raise InputError(f"X has {count:,} rows, and y {len(labels):,}; give a label for each row")
    cells = np.asarray(y, object).ravel()  # in an array of texts, NaN is a text
    if missing := [row for row, cell in enumerate(cells) if _is_missing(cell)]:
        raise InputError(f"Input y contains NaN or None ({list_rows(missing)}); leave these rows out")
    classes, ids = _classes(labels)
    with plain_input_errors():
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
    if len(classes) < 2:
        only = f"1 class ('{classes[0]}')" if len(classes) else "no classes"
        raise InputError(
            f"y of {count:,} sample{'s' if count > 1 else ''} has {only}; give 2 classes or more"
        )
    return Targets(classes, _run_names(classes, ids), ids)


def _classes(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the classes, sorted, and the index of each row's class."""
    try:
        return np.unique(labels, return_inverse=True)
    except TypeError:
        types = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise InputTypeError(f"y has labels of several types ({types}); give one type") from None


def _is_missing(label: Any) -> bool:
    return label is None or (isinstance(label, float) and isnan(label))


def _run_names(classes: NDArray[Any], ids: NDArray[np.int64]) -> list[str]:
    """Return the texts of the classes, with numbers if a run would not take the texts for classes."""
    names = [*map(str, classes)]
    if _are_usable(names, ids):
        return names
    return [f"{index}: {name}".strip() for index, name in enumerate(names)]


def _are_usable(names: list[str], ids: NDArray[np.int64]) -> bool:
    """Return whether a run keeps the names as they are."""
    if len({*names}) < len(names) or any(
        name != name.strip() or not name or missing_label_error(name) for name in names
    ):
        return False
    try:
        check_are_classes("y", [names[index] for index in ids])
    except UserError:
        return False
    return True
