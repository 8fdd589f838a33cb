"""What `foveal predict` and `Run.predict` share: the checks of their options, and the threshold."""

import os
from collections.abc import Iterable, Iterator
from typing import Any

from foveal.core.errors import UserError
from foveal.data.files.remote import is_remote
from foveal.tasks.results import UNSURE, AnsweredRow
from foveal.ui.console import truncate

SHOWN_LETTERS = 60
"""Letters of a text that an error shows."""


def check_numbers(top: int | None, threshold: float | None) -> None:
    """Check how many answers are wanted, and how probable they must be.

    Raises: UserError: a number is out of range.
    """
    if top is not None and top < 1:
        raise UserError(f"--top {top}: give at least 1")
    if threshold is not None and not 0 <= threshold <= 1:
        raise UserError(f"--threshold {threshold:g}: a probability is from 0 to 1")


def are_texts(data: Any) -> bool:
    """Return whether values are a list of texts.

    Raises: UserError: the list is empty.
    """
    if not isinstance(data, list | tuple):
        return False
    if not data:
        raise UserError("an empty list: give a text or more")
    return all(isinstance(text, str) for text in data)


def check_is_no_text(data: Any, task: Any) -> None:
    """Check that a text which stands for data is the path of a file.

    Raises: UserError: it is none.
    """
    is_text = isinstance(data, str) and not (os.path.exists(data) or is_remote(data))
    if is_text and task.source_kind == "text":
        text = truncate(" ".join(data.split()), SHOWN_LETTERS)
        raise UserError(f"{text}: no such file; a text is given in a list: run.predict([{text!r}])")


def apply_threshold(
    rows: Iterable[AnsweredRow], threshold: float | None, task: Any, run: str
) -> Iterable[AnsweredRow]:
    """Return the rows with the answer "unsure" where the probability is below the threshold, if there is one.

    Raises: UserError: the task has a label of that name.
    """
    if threshold is None:
        return rows
    if UNSURE in task.labels:
        raise UserError(f"--threshold: {run} has a label '{UNSURE}'; leave out --threshold")
    return _above(rows, threshold)


def _above(rows: Iterable[AnsweredRow], threshold: float) -> Iterator[AnsweredRow]:
    for row in rows:
        yield row if row.answer is None else row._replace(answer=row.answer.above(threshold))
