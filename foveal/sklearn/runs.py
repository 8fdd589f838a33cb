"""The runs of estimators: trained by `foveal.train`, and asked for answers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import numpy as np

from foveal.api.run import Run
from foveal.api.train import train
from foveal.api.values.stored import write_table
from foveal.config.old_names import flatten
from foveal.core.callbacks import Callback, Record
from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.sklearn.errors import InputTypeError
from foveal.store.cache import cache_folder
from foveal.store.run import RunExistsError
from foveal.tasks.results import AnsweredRow
from foveal.ui.console import log

NO_TEST = {"data.test_fraction": 0.0, "training.final_test": False}
"""Settings of a training whose score is measured outside of it."""
FINISHED = ("budget", "patience", "callback")
"""Reasons for the end of a training that is finished."""


class _End(Callback):
    """Keeps the reason for the end of a training."""

    def __init__(self) -> None:
        self.reason = ""

    def on_end(self, record: Record) -> None:
        self.reason = record["reason"]


def train_run(
    table: Mapping[str, Any],
    task: str,
    run: str | Path | None,
    name: str,
    settings: Any,
    options: Mapping[str, Any],
) -> Run:
    """Train a run on a table, and return it.

    `run` is its folder, or the next free name after it; if not given, a folder in the cache that begins with
    `name`. `options` are arguments of `foveal.train`, in which a search may give numbers of NumPy.

    Raises: UserError: the table or an argument can't be used.
    Raises: KeyboardInterrupt: the training was interrupted.
    """
    if settings is not None and not isinstance(settings, Mapping):
        raise InputTypeError(
            f"settings is {type(settings).__name__}: give a dict, such as {{'model.width': 64}}"
        )
    end = _End()
    options = {key: _plain(value) for key, value in options.items()}
    while True:
        path = _new_path(name) if run is None else _free_path(Path(run).absolute())
        try:
            trained = train(
                table,
                task=task,
                run=path,
                settings=NO_TEST | dict(flatten(settings or {})),
                callbacks=[end],
                **options,
            )
        except RunExistsError:  # another process has just created that folder
            continue
        if end.reason not in FINISHED:
            raise KeyboardInterrupt
        return trained


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _new_path(name: str) -> Path:
    """Return a path in the cache that no other fit takes, in whatever process."""
    return cache_folder() / "sklearn" / f"{name}-{uuid4().hex[:12]}"


def _free_path(path: Path) -> Path:
    """Return the path, or the first free one of NAME-2, NAME-3 ..."""
    free, number = path, 1
    while free.exists():
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free


def answer_texts(run: Run, texts: Sequence[str], top: int) -> list[AnsweredRow]:
    """Return each text with its `top` likeliest answers."""
    rows: list[AnsweredRow] = run.task.predict_texts(texts, top, no_progress)
    return rows


def answer_values(run: Run, column: str, sources: Sequence[Any], top: int) -> list[AnsweredRow]:
    """Return each source with its `top` likeliest answers. The table that is read is not kept."""
    with TemporaryDirectory() as folder:
        path = write_table({column: [*sources]}, Path(folder))
        try:
            rows: list[AnsweredRow] = run.task.predict(str(path), top, log, no_progress)
        except UserError as error:
            raise UserError(str(error).replace(str(path), "X")) from None
    return rows


def count_skipped(run: Run) -> int:
    """Return the number of training rows that could not be used."""
    file = run.path / "skipped.jsonl"
    return len(file.read_text("utf-8").splitlines()) if file.exists() else 0
