"""X of a text classifier."""

from typing import Any

import numpy as np

from foveal.sklearn.errors import InputError, InputTypeError, list_rows


def read_texts(X: Any) -> list[str]:
    """Return the texts of X: a list, an array or a column (N,), or a table (N, 1).

    Raises: InputError: X is a single text, a table of several columns, or has a cell that is no text.
    """
    if isinstance(X, str | bytes):
        raise InputError("X is a single text: give a list of texts")
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) != 1:
        if len(shape) != 2 or shape[1] != 1 or hasattr(X, "nnz"):
            raise InputError(
                f"X is {len(shape)}-D {tuple(shape)}: give texts (N,), such as X['text'] of a table"
            )
        X = np.asarray(X)[:, 0]
    try:
        cells = [*X]
    except TypeError:
        raise InputTypeError(f"X is {type(X).__name__}: give a list of texts") from None
    wrong = [row for row, cell in enumerate(cells) if not isinstance(cell, str)]
    if wrong:
        kind = "None" if cells[wrong[0]] is None else type(cells[wrong[0]]).__name__
        raise InputError(f"X, {list_rows(wrong)}: {kind}, no text; give a text in each row")
    return [*map(str, cells)]
