"""`foveal predict RUN DATA`: a run's answer to each row of DATA."""

import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from foveal.api.evaluation import calibration_json
from foveal.api.prediction import apply_threshold, check_numbers
from foveal.api.results.answer_table import AnswerTable, answer_fields, check_answer_file
from foveal.commands.evaluate import log_calibration
from foveal.commands.ranks import launch_to_use, working_together
from foveal.core.errors import UserError
from foveal.core.progress import ProgressCallback
from foveal.core.runtime import resolve_device
from foveal.data.files.lines import Line, LineReader
from foveal.data.files.remote import is_remote
from foveal.store.durable import atomic_write
from foveal.tasks.data_overrides import with_columns
from foveal.tasks.results import AnsweredRow
from foveal.tasks.session import load
from foveal.tasks.test_time_views import with_test_time_views
from foveal.ui.console import log, print_json, print_plain
from foveal.ui.progress_bar import ProgressBar

CONFIDENCE_THRESHOLD = 0.9
"""Labels with a higher probability count as sure."""
STANDARD_INPUT = "-"
"""The name of standard input as DATA."""


def predict(
    run: Path,
    data: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    /,
    *overrides: str,
    text: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    out: Path | None = None,
    overwrite: Annotated[bool, Parameter(negative="")] = False,
    top: int | None = None,
    threshold: float | None = None,
    question: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    choice: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    tta: str | None = None,
    tta_scales: str | None = None,
    device: str = "auto",
    ranks: int | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Print RUN's answer to each row of DATA as CSV: one row for each row of DATA, in order.

    After the row's own columns (or the name of its file) stand answer, probability, top_k and reason. A row
    that can't be used has no answer, and the reason.

    Parameters
    ----------
    run
        The run folder.
    data
        A text file with one source per line, or a table with a column of sources; an image, recording or
        clip, or a folder or zip of them; maps; or - for lines of text on standard input, each of which is
        answered at once. References in DATA are ignored.
    overrides
        Names of the columns of DATA, such as data.text=review.
    text
        A text in place of DATA; several, --text ... --text ..., are several rows.
    out
        A file to write instead: .csv, .jsonl or .parquet. The file is written whole or not at all.
    overwrite
        Replace the file of --out if it exists.
    top
        How many of the likeliest answers top_k gives; without it, top_k is empty.
    threshold
        Give the answer "unsure" where the probability is lower, such as 0.8.
    question
        A question about the image DATA; several, --question ... --question ..., are a dialog.
    choice
        An answer for a multiple-choice run to choose from; several, --choice red --choice blue.
    tta
        Views of an image whose predictions are averaged: none (the center alone), flip (the mirror image,
        too), flip-shift (also shifted by a pixel), or ten-crop (center and corners, and mirror images).
    tta_scales
        The scales of these views: 1, or several such as 1,1.125,1.25.
    device
        cpu, cuda, mps, or auto.
    ranks
        The number of processes on this machine that share the rows; the answers are those of one.
    json
        Print one JSON object on standard output.
    """
    request = PredictRequest(data, text, question, choice)
    _check_options(request, top, threshold)
    if out is not None:
        check_answer_file(out, data, overwrite)
    alone = "lines and questions are answered one by one" if request.is_answered_one_by_one else ""
    if launch_to_use(ranks, alone):
        return
    with (
        working_together(alone) as together,
        ProgressBar("predicted", before=f"reading {data or run}") as progress,
    ):
        session = with_test_time_views(load(run, resolve_device(device)), tta, tta_scales)
        task = with_columns(session, overrides).task.shared_by(together)
        log_calibration(session)
        rows = _answers(task, request, top or 1, progress)
        rows = apply_threshold(rows, threshold, task, str(run))
        if out is None and not json and together.world.is_main:
            rows = _print_answers(rows, task, top is not None)
        shown = [*rows]
    if not together.world.is_main:
        return
    counts = {} if task.writes_answers else _label_counts(shown)
    if out is not None:
        table = AnswerTable(shown, task.writes_answers, top is not None)
        atomic_write(out, table.content(out.suffix.lower()))
    if json:
        content = _to_json(shown, top is not None) | counts | calibration_json(session)
        print_json({"run": str(run), "data": data} | content)
    else:
        _log_summary(shown, counts, out, threshold)


class PredictRequest(NamedTuple):
    """What a run is to answer: DATA, texts in its place, or questions about DATA and their choices."""

    data: str | None
    texts: tuple[str, ...]
    questions: tuple[str, ...]
    choices: tuple[str, ...]

    @property
    def is_answered_one_by_one(self) -> bool:
        return bool(self.texts or self.questions or self.data == STANDARD_INPUT)


def _answers(
    task: Any, request: PredictRequest, top: int, progress: ProgressCallback
) -> Iterable[AnsweredRow]:
    """Return the answers of a run, one at a time if they are to lines of text.

    Raises: UserError: DATA can't be read.
    """
    if request.questions:
        answered: Iterable[AnsweredRow] = task.answer(
            Path(str(request.data)), request.questions, request.choices, top
        )
        return answered
    if request.is_answered_one_by_one:
        lines = _literal_lines(request.texts) if request.texts else _standard_input()
        answered = task.predict_lines(lines, top)
        return answered
    _check_path(str(request.data), task)
    answered = task.predict(str(request.data), top, log, progress)
    return answered


def _print_answers(rows: Iterable[AnsweredRow], task: Any, has_top: bool) -> list[AnsweredRow]:
    """Print each row as CSV as soon as it is answered. Return all rows."""
    shown: list[AnsweredRow] = []
    for line in AnswerTable(_collect(rows, shown), task.writes_answers, has_top).lines():
        print_plain(line, end="")
    return shown


def _check_options(request: PredictRequest, top: int | None, threshold: float | None) -> None:
    """Check that the options fit together.

    Raises: UserError: they do not.
    """
    data, texts, questions, choices = request
    if choices and not questions:
        raise UserError("--choice needs a --question: give one, or leave --choice out")
    if data is not None and data.startswith("--"):
        raise UserError(f"{data}: unknown option; a file of that name is ./{data}")
    if data is None and not texts:
        raise UserError('no DATA: give a file or folder, - for lines of standard input, or --text "..."')
    if data is not None and texts:
        raise UserError(f"{data} and --text: give one of them")
    if questions and (texts or data == STANDARD_INPUT):
        raise UserError("--question is about an image: give its file as DATA")
    check_numbers(top, threshold)


def _check_path(data: str, task: Any) -> None:
    """Check that DATA exists if the run could read a text in its place.

    Raises: UserError: there is no such file, but there may be such a text.
    """
    if task.source_kind == "text" and not (os.path.lexists(data) or is_remote(data)):
        raise UserError(
            f"{data}: no such file or folder; a text itself is given by --text {shlex.quote(data)}"
        )


def _literal_lines(texts: Iterable[str]) -> Iterator[Line]:
    for number, text in enumerate(texts, 1):
        yield Line(number, text, "")


def _standard_input() -> Iterator[Line]:
    """Yield the lines of standard input.

    Raises: UserError: standard input is closed or has no lines.
    """
    if sys.stdin is None:
        raise UserError("standard input: closed; give lines of text, or a file as DATA")
    if sys.stdin.isatty():
        log("reads lines of text; Ctrl-D ends them")
    number = 0
    for line in LineReader(sys.stdin.buffer.readline):
        number = line.number
        yield line
    if not number:
        raise UserError("standard input: no lines in it; give a text on every line")


def _collect(rows: Iterable[AnsweredRow], shown: list[AnsweredRow]) -> Iterator[AnsweredRow]:
    for row in rows:
        shown.append(row)
        yield row


def _to_json(rows: list[AnsweredRow], has_top: bool) -> dict[str, Any]:
    """Return the answers, and the rows without an answer."""
    predictions = []
    for row in rows:
        if row.answer is not None:
            fields = answer_fields(row, has_top)
            named = {
                name: value for name, value in fields.items() if value not in (None, "") and name != "answer"
            }
            output = {"location": row.location, "source": row.source, "output": row.answer.line}
            predictions.append(output | named)
    skipped = [{"location": row.location, "reason": row.reason} for row in rows if row.answer is None]
    return {"predictions": predictions, "skipped": skipped}


def _label_counts(rows: list[AnsweredRow]) -> dict[str, Any]:
    """Return the number of rows with each label, and the share of sure labels; nothing without labels."""
    answers = [row.answer for row in rows if row.answer is not None]
    texts = [answer.text for answer in answers if isinstance(answer.text, str)]
    shares = [answer.probability for answer in answers if isinstance(answer.probability, float)]
    if not shares:
        return {}
    sure = sum(share > CONFIDENCE_THRESHOLD for share in shares) / len(shares)
    return {"labels": dict(sorted(Counter(texts).items())), "sure": sure}


def _log_summary(
    rows: list[AnsweredRow], counts: dict[str, Any], out: Path | None, threshold: float | None
) -> None:
    if len(rows) > 1 and counts:
        labels = ", ".join(f"{name} {count:,}" for name, count in counts["labels"].items())
        log(f"{labels}; {100 * counts['sure']:.1f} % with a probability over {CONFIDENCE_THRESHOLD}")
    missing = sum(row.answer is None for row in rows)
    if out is not None:
        without = f", {missing:,} of them without an answer (reason)" if missing else ""
        log(f"{out}: {len(rows):,} rows{without}")
