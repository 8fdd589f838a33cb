"""The view `most-wrong` of a run: the held-out rows with the most probable wrong labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.core.terminal_text import counted
from foveal.core.whole_number import WholeNumber
from foveal.data.images.image_examples import ImageExamples
from foveal.inspection.most_wrong.compute import Predictions, WrongRow, wrong_rows
from foveal.inspection.panels import Caption, ImageRow, Images, Panel, Table, Tile
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun, held_out_examples
from foveal.inspection.style import cut_text
from foveal.inspection.view import View

IMAGES_PER_ROW, MAX_SOURCE = 6, 60
"""Images side by side; and characters of a source in the table."""
CAVEAT = (
    "the highest probabilities among many rows: a wrong label in the data looks the same as a mistake of the "
    "model, so look at each row; probabilities of a run that is not calibrated are often too high"
)


@dataclass(frozen=True)
class MostWrongOptions:
    data: str | None = None
    """Other labeled data than the run's held-out part."""
    count: WholeNumber = 12
    """How many rows."""


@register_view("most-wrong")
class MostWrongView(View[MostWrongOptions]):
    summary = "The held-out rows with the most probable wrong labels."
    Options = MostWrongOptions
    progress = "labels predicted"

    def fits(self, run: InspectedRun) -> str:
        return "" if run.task.has_classes else f"this run predicts no classes (task {run.task.name})"

    def compute(
        self, run: InspectedRun, options: MostWrongOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        if options.count < 1:
            raise UserError(f"--count {options.count}: expected 1 or more")
        part, split = held_out_examples(run, options.data, log)
        references = [_as_list(reference) for reference in part.references]
        answers = run.task.answers(part.examples, 1, progress)
        predictions = [Predictions(_as_list(answer.text), _as_list(answer.probability)) for answer in answers]
        wrong = wrong_rows(references, predictions)
        shown = wrong[: options.count]
        panels = [*_images(part.examples, shown), _table(shown, part.sources, run.task.place)]
        share = 100 * len(wrong) / max(1, len(answers))
        facts = [("wrong", f"{len(wrong):,} of {len(answers):,} rows of {split} ({share:.1f} %)")]
        if shown:
            first = shown[0]
            facts.append(("surest", f"{first.prediction}, {100 * first.probability:.1f} %: row {first.row}"))
        rows = [{"source": part.sources[one.row], **one._asdict()} for one in shown]
        values = {"run": str(run.run.path), "split": split, "wrong": len(wrong), "rows": rows}
        path = str(run.run.path)
        title = f"{path}, {split}: the surest of {counted(len(wrong), 'mistake')}"
        return Payload("most-wrong", path, title, tuple(panels), CAVEAT, "exact", tuple(facts), values)


def _as_list(values: Any) -> Sequence[Any]:
    """Return the values of the places of a row; a single value is that of the only place."""
    return [values] if isinstance(values, str | float) else values


def _images(examples: Any, rows: Sequence[WrongRow]) -> list[Panel]:
    """Return the images of the rows with both labels; nothing where the run reads no images."""
    if not isinstance(examples, ImageExamples) or not rows:
        return []
    tiles = [
        Tile(
            examples.center_crop(one.row),
            (
                Caption(f"{one.prediction} {100 * one.probability:.0f} %", "incorrect"),
                Caption(one.reference, "correct"),
                Caption(f"row {one.row}", "muted"),
            ),
        )
        for one in rows
    ]
    starts = range(0, len(tiles), IMAGES_PER_ROW)
    lines = tuple(ImageRow(tuple(tiles[start : start + IMAGES_PER_ROW])) for start in starts)
    return [Images("predicted, then correct", lines, 1.3, 0.16)]


def _table(rows: Sequence[WrongRow], sources: Sequence[str], place: str) -> Table:
    """Return the rows; with places, a column has the number of the place."""
    columns = ("row", *([place] if place else []), "predicted", "probability", "correct", "source")
    lines = tuple(
        (
            str(one.row),
            *([str(one.place)] if place else []),
            one.prediction,
            f"{100 * one.probability:.1f} %",
            one.reference,
            cut_text(" ".join(str(sources[one.row]).split()), MAX_SOURCE),
        )
        for one in rows
    )
    return Table("", columns, lines)
