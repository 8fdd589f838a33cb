"""All checks of data, one after the other."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data.core.hash_split import SplitName
from foveal.data.core.row_table import ListedRows, RowFiles
from foveal.data.core.rows import SkippedRow
from foveal.data.open import DataPaths, open_data
from foveal.data.read_splits import open_splits, read_splits
from foveal.inspection.payload import Payload
from foveal.store.cache import cache_folder
from foveal.studies.data_check.characters import check_characters
from foveal.studies.data_check.checked_data import CheckedData
from foveal.studies.data_check.classes import check_classes, class_counts
from foveal.studies.data_check.columns import check_columns
from foveal.studies.data_check.contradictions import check_contradictions
from foveal.studies.data_check.corpus import read_lines
from foveal.studies.data_check.duplicates import check_duplicates
from foveal.studies.data_check.finding import Finding
from foveal.studies.data_check.lengths import check_lengths
from foveal.studies.data_check.near_texts import check_near_texts
from foveal.studies.data_check.pictures import check_pictures
from foveal.studies.data_check.recordings import check_recordings
from foveal.studies.data_check.report import check_payload, check_sections
from foveal.studies.data_check.series import check_series
from foveal.studies.data_check.unusable import check_unusable
from foveal.studies.study_result import StudyResult
from foveal.tasks.base import Task
from foveal.tasks.shapes.corpus import CorpusTask
from foveal.tasks.shapes.examples import ExampleTask
from foveal.ui.console import Sections

CHECKS: tuple[Callable[[CheckedData], Iterator[Finding]], ...] = (
    check_duplicates,
    check_contradictions,
    check_classes,
    check_unusable,
    check_columns,
    check_lengths,
    check_characters,
    check_near_texts,
    check_pictures,
    check_recordings,
    check_series,
)


@dataclass(frozen=True, repr=False)
class DataCheck(StudyResult):
    """What was found in data."""

    name: str
    task: str
    sizes: Mapping[SplitName, int]
    findings: tuple[Finding, ...]
    class_counts: Mapping[str, tuple[int, ...]]
    """How often each label occurs, by split."""
    label_unit: str
    """The word for what has a label: row, word, step or frame."""
    lengths: NDArray[np.float64]
    """The length of each row's source, NaN if unknown; empty if sources have none."""
    length_unit: str
    """The unit of the lengths: characters, words, steps or seconds."""

    @property
    def problems(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "problem"]

    @property
    def notes(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "note"]

    def sections(self) -> Sections:
        """Return the verdict, and each finding with its first rows."""
        return check_sections(self)

    def payload(self) -> Payload:
        """Return the report."""
        return check_payload(self)


def check_data(task: Task, paths: DataPaths, log: Log, progress: ProgressCallback) -> DataCheck:
    """Check the rows that `task` would train on.

    Raises: UserError: the data can't be read, or their rows are not checked.
    """
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="check-", dir=cache_folder()) as folder:
        data = _read(task, paths, Path(folder), log)
        findings = list[Finding]()
        for number, check in enumerate(CHECKS):
            progress(number, len(CHECKS))
            findings += check(data)
        findings.sort(key=lambda finding: finding.severity != "problem")
        counts = class_counts(data)
        return DataCheck(
            data.name,
            task.name,
            data.sizes,
            tuple(findings),
            dict(zip(data.labels, map(tuple, counts.T.tolist()), strict=True)),
            data.label_unit,
            data.lengths,
            data.data_format.source.length_unit,
        )


def _read(task: Task, paths: DataPaths, folder: Path, log: Log) -> CheckedData:
    """Read the rows of each split into files of a folder."""
    numbers = count()

    def new_sink() -> RowFiles:
        return RowFiles(folder, str(next(numbers)))

    if isinstance(task, CorpusTask):
        return read_lines(paths, task.config.data, new_sink, log)
    name = paths.data if isinstance(paths.data, str) else paths.data.name
    if not isinstance(task, ExampleTask):
        raise UserError(f"{name}: foveal data check does not read the data of task {task.name}")
    config, skipped = task.config.data, list[SkippedRow]()
    data_format = task.data_format
    files = open_splits(
        open_data(paths.data, log, config.encoding), paths.valid, paths.test, data_format, config, log
    )
    # Rows with paths, or with images of several parts, can't be written.
    sink = new_sink if data_format.source.is_stored else ListedRows
    tables = read_splits(data_format, files, config, skipped, sink)
    return CheckedData(name, files, tables, skipped, config, data_format)
