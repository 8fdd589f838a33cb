"""The view `filmstrip` of a run: clips, and what it says of each frame, or of the whole."""

from pathlib import Path
from typing import Any

from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.core.labeled_rows import answered
from foveal.data.video.clip_examples import Shots
from foveal.inspection.filmstrip.plot import Filmstrip, draw
from foveal.store.durable import replace_file
from foveal.tasks.evaluation_data import some_held_out
from foveal.tasks.labeling import ChoosingKind
from foveal.tasks.session import Loaded, kind_of
from foveal.tasks.video import FilmedKind
from foveal.ui.console import check_picture, say, tell_each
from foveal.ui.progress_bar import Meter


def show_filmstrip(loaded: Loaded, query: str | None, out: Path | None, json: bool) -> None:
    """Print, and draw into the PNG `out`, what the run says of the clips at `query`, or of held-out ones.

    UserError for a run of another task.
    """
    kind = kind_of(loaded.config)
    if not isinstance(kind, FilmedKind):
        raise UserError(f"{loaded.run.path}: a run of no clips (task {loaded.config.task.name})")
    check_picture(out)
    shots, sources, rights = _asked(loaded, kind, query)
    given = loaded.config, loaded.model, loaded.inputs, shots
    with Meter("clips seen") as watch:
        if isinstance(kind, ChoosingKind):
            outputs = kind.choices(*given, watch)
        else:
            outputs = [[text] for text in kind.found(*given, watch)]
    if out is not None:
        numbers: Any = shots.columns["source"]
        strips = (shots.frames[numbers[row]] for row in range(len(shots)))
        replace_file(out, draw([*map(Filmstrip, strips, outputs, rights)]))
    found = [
        {"source": source, "output": " ".join(output), "right": right and " ".join(right)}
        for source, output, right in zip(sources, outputs, rights, strict=True)
    ]
    tell_each(loaded.run.path, "clips", found, out, json)


def _asked(
    loaded: Loaded, kind: FilmedKind, query: str | None
) -> tuple[Shots, list[str], list[list[str] | None]]:
    """The clips, their names, and what is right of them, None where that is unknown."""
    if query is not None:
        form: Any = kind.form
        rows, asked, _ = prepare_examples.read_questions(form, query, loaded.inputs, loaded.config.data, say)
        known = {
            row.fields["name"]: _listed(row.fields[form.field])
            for row in answered(form, query, loaded.config.data)
        }
        names = [row.fields["source"] for row in rows]
        return asked, names, [known.get(name) for name in names]
    some, names, rights = some_held_out(loaded)
    assert isinstance(some, Shots)
    return some, names, [*map(_listed, rights)]


def _listed(label: str | list[str]) -> list[str]:
    return [label] if isinstance(label, str) else label
