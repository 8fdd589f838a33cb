"""Classes by name: what the labels of the training part are, their numbers, and the file that keeps them."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.data.core.standardize import reading

Numbers = NDArray[np.int64]


def class_names(
    data: str, labels: Iterable[str], alike: str, mend: str = "", known: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Every label once, in order; that of the `known` ones if they are the same.

    Errors: UserError if there is only one; `alike` says what all have it, `mend` what may help.
    """
    names = tuple(sorted(set(labels)))
    if len(names) < 2:
        raise UserError(f"{data}: {alike} '{names[0]}': at least two classes are needed{mend}")
    return known if set(known) == set(names) else names


def numbering(names: Sequence[str]) -> Callable[[Sequence[str]], Numbers | str]:
    """A function from labels to their numbers, or to why one of them has none."""
    numbers = {name: number for number, name in enumerate(names)}

    def number(labels: Sequence[str]) -> Numbers | str:
        for label in labels:
            if label not in numbers:
                return f"the label '{label}' is not among those of training"
        return np.array([numbers[label] for label in labels], np.int64)

    return number


def names_to_json(names: Sequence[str]) -> bytes:
    return json.dumps(names).encode()


def open_names(path: Path) -> tuple[str, ...]:
    """What `names_to_json` gave. Errors: UserError names a file that is missing or damaged."""
    with reading(path):
        return tuple(map(str, json.loads(path.read_bytes())))
