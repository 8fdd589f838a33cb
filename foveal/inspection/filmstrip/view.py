"""The view `filmstrip` of a run: clips, and what it says of each frame, or of the whole."""

from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.prepare_examples import read_labeled_rows
from foveal.data.video.clip_examples import ClipExamples
from foveal.inspection.filmstrip.plot import Filmstrip, plot_filmstrips
from foveal.store.durable import atomic_write
from foveal.tasks.session import Session
from foveal.ui.console import check_png_path, log, print_items
from foveal.ui.progress_bar import ProgressBar


def show_filmstrip(loaded: Session, query: str | None, out: Path | None, json: bool) -> None:
    """Print, and draw into the PNG `out`, what the run says of the clips at `query`, or of held-out ones.

    UserError for a run of another task.
    """
    task = loaded.task
    if task.reads != "clip":
        raise UserError(f"{loaded.run.path}: a run of no clips (task {task.name})")
    check_png_path(out)
    shots, sources, rights = _load_queries(loaded, query)
    with ProgressBar("clips seen") as watch:
        if task.has_classes:
            outputs = task.predicted_labels(shots, watch)
        else:
            outputs = [[text] for text in task.predicted_texts(shots, watch)]
    if out is not None:
        numbers: Any = shots.columns["source"]
        strips = (shots.frames[numbers[row]] for row in range(len(shots)))
        atomic_write(out, plot_filmstrips([*map(Filmstrip, strips, outputs, rights)]))
    found = [
        {"source": source, "output": " ".join(output), "right": right and " ".join(right)}
        for source, output, right in zip(sources, outputs, rights, strict=True)
    ]
    print_items(loaded.run.path, "clips", found, out, json)


def _load_queries(
    loaded: Session, query: str | None
) -> tuple[ClipExamples, list[str], list[list[str] | None]]:
    """The clips, their names, and what is right of them, None where that is unknown."""
    if query is not None:
        form: Any = loaded.task.form
        rows, asked, _ = prepare_examples.read_unlabeled(
            form, query, loaded.processor, loaded.config.data, log
        )
        known = {
            row.fields["name"]: _as_list(row.fields[form.field])
            for row in read_labeled_rows(form, query, loaded.config.data)
        }
        names = [row.fields["source"] for row in rows]
        return asked, names, [known.get(name) for name in names]
    some, names, rights = loaded.few_held_out()
    assert isinstance(some, ClipExamples)
    return some, names, [*map(_as_list, rights)]


def _as_list(label: str | list[str]) -> list[str]:
    return [label] if isinstance(label, str) else label
