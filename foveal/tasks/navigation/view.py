"""The view `walks` of a run: which way it goes by an instruction, drawn on the map."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from foveal.core.errors import UserError
from foveal.data import prepare_examples
from foveal.data.core.examples import Examples
from foveal.data.prepare_examples import read_labeled_rows
from foveal.store.durable import atomic_write
from foveal.tasks.navigation.grid_world import moves_to_text, parse_moves
from foveal.tasks.navigation.plot import EpisodePath, plot_episodes
from foveal.tasks.navigation.task import NavigationTask
from foveal.tasks.session import Session
from foveal.ui.console import check_png_path, log, print_items
from foveal.ui.progress_bar import ProgressBar


def show_navigation(loaded: Session, query: str | None, out: Path | None, json: bool) -> None:
    """Print, and draw into the PNG `out`, how the run walks on the maps at `query`, or on held-out ones.

    UserError for a run of another task.
    """
    task = loaded.task
    if not isinstance(task, NavigationTask):
        raise UserError(f"{loaded.run.path}: a run of no walks (task {task.name})")
    check_png_path(out)
    examples, sources, rights = _load_queries(loaded, task, query)
    with ProgressBar("maps walked") as watch:
        outputs = task.predicted_texts(examples, watch)
    if out is not None:
        maps, starts = (np.asarray(examples.columns[name]) for name in ("map", "start"))
        walks = []
        for cells, start, output, path, source in zip(
            maps, starts.tolist(), outputs, rights, sources, strict=True
        ):
            right = None if path is None else parse_moves(path)
            walks.append(EpisodePath(cells, tuple(start), parse_moves(output), right, source))
        atomic_write(out, plot_episodes(walks))
    found = [
        {"instruction": source, "moves": output, "right": right}
        for source, output, right in zip(sources, outputs, rights, strict=True)
    ]
    print_items(loaded.run.path, "walks", found, out, json)


def _load_queries(
    loaded: Session, task: NavigationTask, query: str | None
) -> tuple[Examples, list[str], Sequence[str | None]]:
    """What is walked, the instructions, and the right paths, None where they are unknown."""
    if query is not None:
        rows, examples, _ = prepare_examples.read_unlabeled(
            task.form, query, loaded.processor, loaded.config.data, log
        )
        known = {
            row.location: moves_to_text(row.fields["path"])
            for row in read_labeled_rows(task.form, query, loaded.config.data)
        }
        return examples, [row.fields["source"] for row in rows], [known.get(row.location) for row in rows]
    return loaded.few_held_out()
