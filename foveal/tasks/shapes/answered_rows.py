"""Rows with their answers, in the order of the data. A row that can't be used keeps its place."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback, no_progress
from foveal.data.core.fields import Fields
from foveal.data.core.rows import Row, SkippedPart, SkippedRow, source_text
from foveal.data.files.lines import Line
from foveal.data.open import open_path
from foveal.data.text.unknown_tokens import check_known_sources
from foveal.store.cache import shorten_unpacked_paths
from foveal.tasks.results import AnsweredRow

if TYPE_CHECKING:
    from foveal.tasks.shapes.examples import ExampleTask

MAX_LOGGED_ROWS = 5
"""Rows without an answer that are logged one by one."""
OTHER_DATA = "this process reads other data than rank 0: give all the same"
EMPTY_LINE = "empty: write a source on every line"


def answer_data(
    task: "ExampleTask", data: str, top: int, log: Log, progress: ProgressCallback
) -> list[AnsweredRow]:
    """Return each row of DATA with its `top` likeliest answers.

    Raises: UserError: the model can read no row.
    """
    config = task.config.data
    part = open_path(data, config.encoding).sources(task.data_format.source.table)
    rows, reasons = _split_off_parts(task.data_format.read_in_order(part, config))
    task.together.check_same([(row.location, _source(row)) for row in rows], f"{data}: {OTHER_DATA}")
    columns = task.data_format.own_columns(part, rows, config)
    known = [_known_or_skipped(row, task.processor.source) for row in rows]
    answered = [
        row if row.answer is None else row._replace(reason="; ".join(reasons.get(row.location, ())))
        for row in answer_rows(task, known, columns, top, progress)
    ]
    missing = [row for row in answered if row.answer is None]
    if len(missing) == len(answered):
        reason = f": {missing[0].location}: {missing[0].reason}" if missing else ""
        raise UserError(f"{data}: no readable source{reason}")
    for row in missing[:MAX_LOGGED_ROWS]:
        log(shorten_unpacked_paths(f"skipped: {row.location}: {row.reason}"))
    if len(missing) > MAX_LOGGED_ROWS:
        log(f"{data}: {len(missing):,} of {len(answered):,} rows have no answer; `reason` says why")
    return answered


def answer_texts(
    task: "ExampleTask", texts: Sequence[str], top: int, progress: ProgressCallback
) -> list[AnsweredRow]:
    """Return each text with its `top` likeliest answers."""
    rows = [_line_row(task, Line(number, text, "")) for number, text in enumerate(texts, 1)]
    source, config = task.data_format.source, task.config.data
    columns = [source.own_columns(row, config) or {} for row in rows]
    return [*answer_rows(task, rows, columns, top, progress)]


def _line_row(task: "ExampleTask", line: Line) -> Row | SkippedRow:
    """Return the row of a line of text, or why the line can't be used."""
    location, text = f"line {line.number}", line.text.strip()
    if line.reason or not text:
        return SkippedRow(location, line.reason or EMPTY_LINE)
    return _known_or_skipped(task.data_format.source.line_row(location, text), task.processor.source)


def answer_lines(task: "ExampleTask", lines: Iterable[Line], top: int) -> Iterator[AnsweredRow]:
    """Yield each line of text with its `top` likeliest answers, as soon as it is read.

    Raises: UserError: the first line is the header of a table.
    """
    source, config = task.data_format.source, task.config.data
    for line in lines:
        row, text = _line_row(task, line), line.text.strip()
        columns = source.own_columns(row, config) or {}
        names = [name.strip().strip('"') for name in re.split(r"[,;\t|]", text)]
        if line.number == 1 and len(names) > 1 and (header := columns.keys() & {*names}):
            raise UserError(
                f"'{text}' is the header of a table with the column '{next(iter(header))}', and each line is "
                "read as a text; give the file: foveal predict RUN FILE.csv"
            )
        yield from answer_rows(task, [row], [columns], top, no_progress)


def answer_rows(
    task: "ExampleTask",
    rows: Sequence[Row | SkippedRow],
    columns: Sequence[Fields],
    top: int,
    progress: ProgressCallback,
) -> Iterator[AnsweredRow]:
    """Yield the rows with their own `columns` and the model's answers."""
    unreadable: list[SkippedRow] = []
    usable, examples = task.data_format.encode_unlabeled(
        [row for row in rows if isinstance(row, Row)], task.processor, task.config.data, unreadable
    )
    answers = iter(task.answers(examples, top, progress) if usable else ())
    usable_ids, reasons = {id(row) for row in usable}, iter(unreadable)
    for row, own in zip(rows, columns, strict=True):
        if id(row) in usable_ids and isinstance(row, Row):
            yield AnsweredRow(row.location, source_text(row), own, next(answers), "")
        else:
            reason = row.reason if isinstance(row, SkippedRow) else next(reasons).reason
            yield AnsweredRow(row.location, _source(row), own, None, reason)


def _source(row: Row | SkippedRow) -> str:
    return source_text(row) if isinstance(row, Row) else ""


def _known_or_skipped(row: Row | SkippedRow, processor: Any) -> Row | SkippedRow:
    """Return a row, or why there is no answer if the training had few of its characters or words."""
    if isinstance(row, SkippedRow):
        return row
    try:
        check_known_sources("text", processor, [source_text(row)])
    except UserError as error:
        return SkippedRow(row.location, str(error).removeprefix("text: "))
    return row


def _split_off_parts(
    rows: Iterable[Row | SkippedRow],
) -> tuple[list[Row | SkippedRow], dict[str, list[str]]]:
    """Return the rows, and why parts of the rows that are used can't be used, by the row's location."""
    whole, reasons = list[Row | SkippedRow](), dict[str, list[str]]()
    for row in rows:
        if isinstance(row, SkippedPart):
            name = row.location.removeprefix(f"{row.row}, ")
            reasons.setdefault(row.row, []).append(f"{name}: {row.reason}")
        else:
            whole.append(row)
    return whole, reasons
