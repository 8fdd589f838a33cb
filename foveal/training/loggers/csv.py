"""`--log csv`: the metrics of a run as a table, metrics.csv."""

import csv
import io
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from foveal.store.durable import atomic_write, explain_disk_errors
from foveal.store.regular_files import open_regular
from foveal.training.loggers.base import Logger, Present


class CsvLogger(Logger):
    """Writes a row for each step and each evaluation.

    The table is made anew from metrics.jsonl when a training starts, so it never has a row twice.
    """

    name = "csv"

    def open(self, step: int, state: dict[str, Any]) -> Present:
        self._columns = ["step"]
        self._descriptor: int | None = None
        self._begin([])
        return {}

    def write(self, values: Mapping[str, float], step: int) -> None:
        row = {"step": step, **values}
        if new := [name for name in row if name not in self._columns]:
            with self._file.open(newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
            self._columns += new
            self._begin(rows)
        assert self._descriptor is not None
        with explain_disk_errors(self._file):
            os.write(self._descriptor, self._lines([row]))

    def close(self, reason: str) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @property
    def _file(self) -> Path:
        return self.run / "metrics.csv"

    def _begin(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Write the table with these rows, and open it for more."""
        self.close("")
        header = dict(zip(self._columns, self._columns, strict=True))
        atomic_write(self._file, self._lines([header, *rows]))
        self._descriptor = open_regular(self._file, os.O_WRONLY | os.O_APPEND)

    def _lines(self, rows: Iterable[Mapping[str, Any]]) -> bytes:
        text = io.StringIO()
        csv.DictWriter(text, self._columns, lineterminator="\n").writerows(rows)
        return text.getvalue().encode()
