"""Classes by name: what the labels of the training part are, their numbers, and the file that keeps them."""

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
    """Every label once, in order; that of the `known` ones if they are the same.

    Errors: UserError if there is only one; `subject` says what all have it, `hint` what may help.
    """
    names = tuple(sorted(set(labels)))
    if len(names) < 2:
        raise UserError(f"{data}: {subject} '{names[0]}': at least two classes are needed{hint}")
    return known if set(known) == set(names) else names


def make_label_encoder(names: Sequence[str]) -> Callable[[Sequence[str]], ClassIds | str]:
    """A function from labels to their numbers, or to why one of them has none."""
    numbers = {name: number for number, name in enumerate(names)}

    def number(labels: Sequence[str]) -> ClassIds | str:
        for label in labels:
            if label not in numbers:
                return f"the label '{label}' is not among those of training"
        return np.array([numbers[label] for label in labels], np.int64)

    return number


def class_names_to_json(names: Sequence[str]) -> bytes:
    return json.dumps(names).encode()


def load_class_names(path: Path) -> tuple[str, ...]:
    """What `class_names_to_json` gave. Errors: UserError names a file that is missing or damaged."""
    with explain_read_errors(path):
        return tuple(map(str, json.loads(path.read_bytes())))
