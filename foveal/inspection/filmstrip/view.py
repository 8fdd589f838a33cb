"""The view `filmstrip` of a run: clips with a prediction for each frame, or for the whole clip."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data import prepare_examples
from foveal.data.open import open_path
from foveal.data.prepare_examples import read_labeled_rows
from foveal.data.video.clip_examples import ClipExamples
from foveal.inspection.base import Facts, InspectedRun, View
from foveal.inspection.filmstrip.plot import Filmstrip, plot_filmstrips
from foveal.inspection.registry import register_view


@dataclass(frozen=True)
class FilmstripOptions:
    query: str | None = None
    """Clips; a few of the run's held-out ones if not given."""


@dataclass(frozen=True)
class FilmstripResult:
    run: str
    sources: Sequence[str]
    strips: Sequence[Filmstrip]

    def to_json(self) -> dict[str, Any]:
        return {"run": self.run, "clips": self._clips()}

    def sections(self) -> Iterator[Facts]:
        for clip in self._clips():
            yield [(name, value) for name, value in clip.items() if value is not None]

    def _clips(self) -> list[dict[str, str | None]]:
        clips = []
        for source, (_, predictions, references) in zip(self.sources, self.strips, strict=True):
            right = None if references is None else " ".join(references)
            clips.append({"source": source, "output": " ".join(predictions), "right": right})
        return clips


@register_view
class FilmstripView(View[FilmstripOptions, FilmstripResult]):
    name = "filmstrip"
    summary = "Clips, with a run's prediction for each frame or for the whole clip."
    Options = FilmstripOptions
    progress = "clips read"

    def check(self, run: InspectedRun) -> None:
        if run.task.source_kind != "clip":
            raise UserError(f"{run.run.path}: this run reads no clips (task {run.task.name})")

    def compute(
        self, run: InspectedRun, options: FilmstripOptions, log: Log, progress: ProgressCallback
    ) -> FilmstripResult:
        clips, sources, references = _load_clips(run, options.query, log)
        if run.task.has_classes:
            outputs = run.task.predicted_labels(clips, progress)
        else:
            outputs = [[text] for text in run.task.predicted_texts(clips, progress)]
        numbers: Any = clips.columns["source"]
        frames = (clips.frames[numbers[row]] for row in range(len(clips)))
        strips = [*map(Filmstrip, frames, outputs, references)]
        return FilmstripResult(str(run.run.path), sources, strips)

    def plot(self, result: FilmstripResult) -> bytes:
        return plot_filmstrips(result.strips)


def _load_clips(
    run: InspectedRun, query: str | None, log: Log
) -> tuple[ClipExamples, list[str], list[list[str] | None]]:
    """Return the clips, their names and their references, None where unknown."""
    if query is None:
        clips, names, references = run.few_held_out()
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
