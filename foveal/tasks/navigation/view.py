"""The view `walks` of a run: which way it goes by an instruction, drawn on the map."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.core.examples import Examples
from foveal.data.core.labeled_rows import answered
from foveal.store.durable import replace_file
from foveal.tasks.evaluation_data import some_held_out
from foveal.tasks.navigation.grid_world import moves_in, spelled
from foveal.tasks.navigation.plot import Walked, draw
from foveal.tasks.navigation.task import NavigateKind
from foveal.tasks.session import Loaded, kind_of
from foveal.ui.console import check_picture, say, tell_each
from foveal.ui.progress_bar import Meter


def show_walks(loaded: Loaded, query: str | None, out: Path | None, json: bool) -> None:
    """Print, and draw into the PNG `out`, how the run walks on the maps at `query`, or on held-out ones.

    UserError for a run of another task.
    """
    kind = kind_of(loaded.config)
    if not isinstance(kind, NavigateKind):
        raise UserError(f"{loaded.run.path}: a run of no walks (task {loaded.config.task.name})")
    check_picture(out)
    examples, sources, rights = _asked(loaded, kind, query)
    with Meter("maps walked") as watch:
        outputs = kind.found(loaded.config, loaded.model, loaded.inputs, examples, watch)
    if out is not None:
        maps, starts = (np.asarray(examples.columns[name]) for name in ("map", "start"))
        walks = []
        for cells, start, output, path, source in zip(
            maps, starts.tolist(), outputs, rights, sources, strict=True
        ):
            right = None if path is None else moves_in(path)
            walks.append(Walked(cells, tuple(start), moves_in(output), right, source))
        replace_file(out, draw(walks))
    found = [
        {"instruction": source, "moves": output, "right": right}
        for source, output, right in zip(sources, outputs, rights, strict=True)
    ]
    tell_each(loaded.run.path, "walks", found, out, json)


def _asked(
    loaded: Loaded, kind: NavigateKind, query: str | None
) -> tuple[Examples, list[str], Sequence[str | None]]:
    """What is walked, the instructions, and the right paths, None where they are unknown."""
    if query is not None:
        rows, examples, _ = prepare_examples.read_questions(
            kind.form, query, loaded.inputs, loaded.config.data, say
        )
        known = {
            row.place: spelled(row.fields["path"]) for row in answered(kind.form, query, loaded.config.data)
        }
        return examples, [row.fields["source"] for row in rows], [known.get(row.place) for row in rows]
    return some_held_out(loaded)
