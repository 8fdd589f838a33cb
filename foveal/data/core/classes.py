"""Names of classes: the labels of the training split, their ids, and the file that stores them."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.data.core.standardize import explain_read_errors

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
        names = json.loads(path.read_bytes())
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TypeError("not a list of names")
        if len(set(names)) < len(names):
            raise ValueError("a name twice")
        return tuple(names)
