"""Names of classes: the labels of the training split, their ids, and the file that stores them."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.core.parse_json import parse_json
from foveal.data.core.standardize import explain_read_errors

MIN_CHECKED_LABELS, MAX_NUMBERS = 4, 20
"""Labels from which on numbers are looked at, and distinct numbers that may be classes in any case."""
LABEL_SEPARATORS = ",;|"
"""Characters between several labels in a text."""
MISSING_LABELS = frozenset(("nan", "NaN", "-nan", "-NaN", "null", "NULL", "<NA>", "#N/A"))
"""Labels that pandas and spreadsheets write where there is none."""
DOUBTFUL_LABELS = frozenset(("None", "NA", "N/A", "n/a"))
"""Labels that may mean that there is none, and may be classes."""
ClassIds = NDArray[np.int64]
LABELS_FILE = "labels.json"


def class_names(
    data: str, labels: Iterable[str], subject: str, hint: str = "", known: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return every label once, sorted, or in the order of `known` if `known` has the same labels.

    `subject` is the start of the error message, before the only label. `hint` is its end.

    Raises: UserError: there is only one label.
    """
    names = tuple(sorted(set(labels)))
    if len(names) < 2:
        raise UserError(f"{data}: {subject} '{names[0]}': at least two classes are needed{hint}")
    return known if set(known) == set(names) else names


def missing_label_error(label: str) -> str:
    """Return the reason why a label is none, such as the `nan` that programs write. Empty for a label."""
    if label not in MISSING_LABELS:
        return ""
    return f"the label is '{label}', which is taken as missing; if it is a class, give it another name"


def check_are_classes(data: str, labels: Iterable[str]) -> None:
    """Check that labels, which may be counted, are names of classes, and neither numbers to predict, nor
    lists of labels, nor perhaps missing.

    Raises: UserError: they are not.
    """
    counts = Counter(labels)
    names = sorted(counts)
    listed = next((name for name in names if name.startswith("[") and name.endswith("]")), "")
    if listed or (listed := _combined_label(names)):
        raise UserError(
            f"{data}: '{listed}' looks like several labels, and a row has one; give one label, or a row each "
            "(to keep it as a class, write it without the separator, such as a+b)"
        )
    if doubtful := next((name for name in names if _may_be_missing(name, names)), ""):
        raise UserError(
            f"{data}: the label '{doubtful}' of {counts[doubtful]:,} rows may be a class, or mean that "
            "there is none; give the class another name, such as other, or leave it empty in the rows without"
        )
    check_are_no_numbers(data, counts)


def check_are_no_numbers(data: str, labels: Iterable[str]) -> None:
    """Check that labels, which may be counted, are names of classes, and not numbers to predict.

    Raises: UserError: they are numbers.
    """
    counts = Counter(labels)
    names, total = sorted(counts), counts.total()
    numbers = [number for number in map(to_number, names) if number is not None]
    if len(numbers) < len(names) or total <= MIN_CHECKED_LABELS:
        return
    are_whole = all(number.is_integer() for number in numbers)
    if are_whole:
        is_sparse = len(names) > MAX_NUMBERS and max(numbers) - min(numbers) > 2 * len(names)
        refused = 2 * len(names) > total or is_sparse
    else:
        refused = len(names) > MAX_NUMBERS or 2 * len(names) > total
    if refused:
        raise UserError(
            f"{data}: {len(names):,} different numbers as labels of {total:,} rows, such as {names[0]}"
            "; regression is not supported: make classes of them, such as low and high"
        )


def to_number(label: str) -> float | None:
    """Return the finite number that a label is, if it is one."""
    try:
        number = float(label)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _may_be_missing(name: str, names: Sequence[str]) -> bool:
    """Return whether `name` is a word for a missing label that is not spelled as most other labels are.

    Among country codes "NA" is a country, and among "None", "Mild" and "Severe" all are classes.
    """
    if name not in DOUBTFUL_LABELS:
        return False
    others = [other for other in names if other not in DOUBTFUL_LABELS]
    return 2 * sum(_spelling(other) == _spelling(name) for other in others) <= len(others)


def _spelling(label: str) -> str:
    if label.isupper() or label.islower():
        return "upper" if label.isupper() else "lower"
    return "title" if label[:1].isupper() else "other"


def _combined_label(names: Sequence[str]) -> str:
    """Return a label that joins labels of other rows, such as "a,b" beside "a" and "b", or one of many that
    share their parts; else nothing."""
    for separator in LABEL_SEPARATORS:
        joined = {
            name: {part.strip() for part in name.split(separator)} for name in names if separator in name
        }
        alone = {*names} - joined.keys()
        if whole := next((name for name, parts in joined.items() if len(parts) > 1 and parts <= alone), ""):
            return whole
        counts = Counter(part for parts in joined.values() for part in parts)
        counts.update(alone)
        shared = [name for name, parts in joined.items() if all(counts[part] > 1 for part in parts)]
        if 2 * len(shared) > len(joined):
            return shared[0]
    return ""


def make_label_encoder(names: Sequence[str]) -> Callable[[Sequence[str]], ClassIds | str]:
    """Return a function from labels to their ids, or for an unknown label to the reason."""
    ids = {name: class_id for class_id, name in enumerate(names)}

    def encode(labels: Sequence[str]) -> ClassIds | str:
        for label in labels:
            if label not in ids:
                return f"the label '{label}' is not among those of training"
        return np.array([ids[label] for label in labels], np.int64)

    return encode


def class_names_to_json(names: Sequence[str]) -> bytes:
    return json.dumps(names).encode()


def load_class_names(path: Path) -> tuple[str, ...]:
    """Read the names that `class_names_to_json` wrote.

    Raises: UserError: the file is missing or damaged.
    """
    with explain_read_errors(path):
        names = parse_json(path.read_bytes())
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TypeError("not a list of names")
        if len(set(names)) < len(names):
            raise ValueError("a name twice")
        return tuple(names)
