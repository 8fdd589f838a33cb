"""`foveal predict RUN DATA`: a run's answer for each row of DATA."""

import sys
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from foveal.core.errors import UserError
from foveal.core.runtime import resolve_device
from foveal.core.signals import SignalHandler
from foveal.tasks.base import Predictions
from foveal.tasks.session import load
from foveal.tasks.test_time_views import with_test_time_views
from foveal.ui.console import log, print_json
from foveal.ui.progress_bar import ProgressBar

CONFIDENCE_THRESHOLD = 0.9
"""A label whose probability is higher is told as sure."""


def predict(
    run: Path,
    data: str,
    /,
    *,
    question: tuple[str, ...] = (),
    choice: tuple[str, ...] = (),
    tta: str | None = None,
    tta_scales: str | None = None,
    device: str = "auto",
    json: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Write RUN's label, tags or target for each row of DATA, a line each.

    Of pictures also how probable each label is (--json), and how many are surely of which.

    Parameters
    ----------
    run
        The run folder.
    data
        A text file with one source a line, or a table with a column of them; a picture, recording or clip, a
        folder or zip of them; maps. Answers in it are not looked at.
    question
        What to ask about the picture DATA; several, --question ... --question ..., are a talk.
    choice
        What a run that chooses is to choose among; several, --choice red --choice blue.
    tta
        Of a picture: none (the centre), flip (mirrored too), flip-shift (a pixel aside too), or ten-crop
        (corners and centre, mirrored too), whose answers are averaged.
    tta_scales
        At which of them: 1, or several as 1,1.125,1.25.
    device
        cpu, cuda, or auto.
    json
        Print one JSON object on standard output.
    """
    with SignalHandler(), ProgressBar("predicted") as watch:
        loaded = with_test_time_views(load(run, resolve_device(device)), tta, tta_scales)
        if choice and not question:
            raise UserError("--choice is of a --question: give one, or leave it out")
        if question:
            found: Predictions = loaded.task.answer(Path(data), question, choice)
        else:
            found = loaded.task.predict(data, log, watch)
    if json:
        columns = {
            "location": found.locations,
            "source": found.sources,
            "output": found.outputs,
            "probability": found.probabilities,
        }
        known = {name: column for name, column in columns.items() if column is not None}
        answers = [dict(zip(known, row, strict=True)) for row in zip(*known.values(), strict=True)]
        skipped = [{"location": row.location, "reason": row.reason} for row in found.skipped]
        told = {"run": str(run), "data": data, "predictions": answers, "skipped": skipped}
        print_json(told | _label_counts(found))
    else:
        sys.stdout.write("".join(f"{' '.join(output.split())}\n" for output in found.outputs))
        if len(found.outputs) > 1 and (counted := _label_counts(found)):
            labels = ", ".join(f"{name} {count:,}" for name, count in counted["labels"].items())
            log(f"{labels}; {100 * counted['sure']:.1f} % with a probability over {CONFIDENCE_THRESHOLD}")


def _label_counts(predictions: Predictions) -> dict[str, Any]:
    """How many sources are of each label, and the share of which the model is sure."""
    if predictions.probabilities is None:
        return {}
    sure = sum(probability > CONFIDENCE_THRESHOLD for probability in predictions.probabilities) / len(
        predictions.probabilities
    )
    return {"labels": dict(sorted(Counter(predictions.outputs).items())), "sure": sure}
