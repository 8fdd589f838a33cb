"""The view `filmstrip` of a run: clips with a prediction for each frame, or for the whole clip."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import UInt8

from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data import prepare_examples
from foveal.data.open import open_path
from foveal.data.prepare_examples import read_labeled_rows
from foveal.data.video.clip_examples import ClipExamples
from foveal.inspection.panels import Caption, ImageRow, Images, Tile, answer_role
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View

CAVEAT = "a few clips, not a score: foveal evaluate measures all of them"
FRAME_SIZE = 0.64
"""Inches of a frame's longer side."""


@dataclass(frozen=True)
class FilmstripOptions:
    query: str | None = None
    """Clips; a few of the run's held-out ones if not given."""


class Filmstrip(NamedTuple):
    """A clip with a prediction for each frame, or for the whole clip. `references` is None where unknown."""

    source: str
    frames: UInt8[np.ndarray, "T H W C"]
    predictions: Sequence[str]
    references: Sequence[str] | None


@register_view("filmstrip")
class FilmstripView(View[FilmstripOptions]):
    summary = "Clips, with a run's prediction for each frame or for the whole clip."
    Options = FilmstripOptions
    progress = "clips read"

    def fits(self, run: InspectedRun) -> str:
        return "" if run.task.source_kind == "clip" else f"this run reads no clips (task {run.task.name})"

    def compute(
        self, run: InspectedRun, options: FilmstripOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        clips, sources, references = _load_clips(run, options.query, log)
        if run.task.has_classes:
            outputs = run.task.predicted_labels(clips, progress)
        else:
            outputs = [[text] for text in run.task.predicted_texts(clips, progress)]
        numbers: Any = clips.columns["source"]
        frames = (clips.frames[numbers[row]] for row in range(len(clips)))
        strips = [*map(Filmstrip, sources, frames, outputs, references)]
        return filmstrip_payload(str(run.run.path), strips)


def filmstrip_payload(subject: str, strips: Sequence[Filmstrip]) -> Payload:
    """Return the clips as rows of frames. Correct predictions are green; the reference stands below an
    incorrect one."""
    clips, facts = [], []
    for strip in strips:
        right = None if strip.references is None else " ".join(strip.references)
        clip = {"source": strip.source, "output": " ".join(strip.predictions), "right": right}
        clips.append(clip)
        facts += [(name, value) for name, value in clip.items() if value is not None]
    panels = (Images("", tuple(map(_row, strips)), FRAME_SIZE),)
    title, values = f"Predictions of {subject}", {"run": subject, "clips": clips}
    return Payload("filmstrip", subject, title, panels, CAVEAT, "exact", tuple(facts), values)


def _row(strip: Filmstrip) -> ImageRow:
    """Return the frames with their predictions, or with the prediction for all of them below the row."""
    references: Sequence[str | None] = strip.references or [None] * len(strip.predictions)
    captions = [
        (Caption(text, answer_role(text, reference)),)
        + ((Caption(reference, "muted"),) if reference not in (None, text) else ())
        for text, reference in zip(strip.predictions, references, strict=True)
    ]
    if len(captions) == 1:
        return ImageRow(tuple(map(Tile, strip.frames)), captions=captions[0])
    return ImageRow(tuple(map(Tile, strip.frames, captions)))


def _load_clips(
    run: InspectedRun, query: str | None, log: Log
) -> tuple[ClipExamples, list[str], list[list[str] | None]]:
    """Return the clips, their names and their references, None where unknown."""
    if query is None:
        clips, names, references = run.few_held_out(log)
        assert isinstance(clips, ClipExamples)
        return clips, names, [*map(_as_list, references)]
    data_format, data, opened = run.task.data_format, run.config.data, open_path(query)
    rows, clips, _ = prepare_examples.read_unlabeled(data_format, opened, run.processor, data, log)
    labeled = read_labeled_rows(data_format, opened, data)
    known = {row.fields["name"]: _as_list(row.fields[data_format.target.field]) for row in labeled}
    names = [row.fields["source"] for row in rows]
    return clips, names, [known.get(name) for name in names]


def _as_list(label: str | list[str]) -> list[str]:
    return [label] if isinstance(label, str) else label
