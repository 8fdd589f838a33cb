"""`foveal predict RUN DATA`: a run's prediction for each row of DATA."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from foveal.core.errors import UserError
from foveal.core.runtime import resolve_device
from foveal.core.signals import SignalHandler
from foveal.tasks.results import Predictions
from foveal.tasks.session import load
from foveal.tasks.test_time_views import with_test_time_views
from foveal.ui.console import log, print_json, print_plain
from foveal.ui.progress_bar import ProgressBar

CONFIDENCE_THRESHOLD = 0.9
"""Labels with a higher probability count as sure."""


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
    """Print RUN's label, tags or target for each row of DATA, one per line.

    For images --json also gives the probability of each label, and how many labels are sure.

    Parameters
    ----------
    run
        The run folder.
    data
        A text file with one source per line, or a table with a column of sources; an image, recording or
        clip, or a folder or zip of them; maps. References in DATA are ignored.
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
        cpu, cuda, or auto.
    json
        Print one JSON object on standard output.
    """
    with SignalHandler(), ProgressBar("predicted", before=f"reading {data}") as progress:
        session = with_test_time_views(load(run, resolve_device(device)), tta, tta_scales)
        if choice and not question:
            raise UserError("--choice needs a --question: give one, or leave --choice out")
        if question:
            predictions: Predictions = session.task.answer(Path(data), question, choice)
        else:
            predictions = session.task.predict(data, log, progress)
    if json:
        print_json({"run": str(run), "data": data} | _to_json(predictions) | _label_counts(predictions))
    else:
        print_plain("".join(f"{' '.join(output.split())}\n" for output in predictions.outputs), end="")
        if len(predictions.outputs) > 1 and (counts := _label_counts(predictions)):
            labels = ", ".join(f"{name} {count:,}" for name, count in counts["labels"].items())
            log(f"{labels}; {100 * counts['sure']:.1f} % with a probability over {CONFIDENCE_THRESHOLD}")


def _to_json(predictions: Predictions) -> dict[str, Any]:
    """Return the predictions with the columns that the task has, and the skipped rows."""
    all_columns = {
        "location": predictions.locations,
        "source": predictions.sources,
        "output": predictions.outputs,
        "probability": predictions.probabilities,
    }
    columns = {name: column for name, column in all_columns.items() if column is not None}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    skipped = [{"location": row.location, "reason": row.reason} for row in predictions.skipped]
    return {"predictions": rows, "skipped": skipped}


def _label_counts(predictions: Predictions) -> dict[str, Any]:
    """Return the number of sources with each label, and the share of sure labels; nothing without labels."""
    probabilities = predictions.probabilities
    if probabilities is None:
        return {}
    sure = sum(probability > CONFIDENCE_THRESHOLD for probability in probabilities) / len(probabilities)
    return {"labels": dict(sorted(Counter(predictions.outputs).items())), "sure": sure}
