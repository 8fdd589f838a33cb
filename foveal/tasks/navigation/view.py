"""The view `navigation` of a run: the paths that the agent takes for instructions, drawn on maps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data import prepare_examples
from foveal.data.core.examples import Examples
from foveal.data.open import open_path
from foveal.data.prepare_examples import read_labeled_rows
from foveal.inspection.payload import Payload
from foveal.inspection.registry import register_view
from foveal.inspection.run_protocols import InspectedRun
from foveal.inspection.view import View
from foveal.tasks.navigation.grid_world import moves_to_text, parse_moves
from foveal.tasks.navigation.panels import EpisodePath, navigation_payload
from foveal.tasks.navigation.task import NavigationTask


@dataclass(frozen=True)
class NavigationOptions:
    query: str | None = None
    """Maps with instructions; a few of the run's held-out ones if not given."""


@register_view("navigation")
class NavigationView(View[NavigationOptions]):
    summary = "The paths that a run takes by instructions, drawn on maps."
    Options = NavigationOptions
    progress = "maps read"

    def fits(self, run: InspectedRun) -> str:
        if isinstance(run.task, NavigationTask):
            return ""
        return f"this run follows no instructions (task {run.task.name})"

    def compute(
        self, run: InspectedRun, options: NavigationOptions, log: Log, progress: ProgressCallback
    ) -> Payload:
        examples, instructions, references = _load_episodes(run, options.query, log)
        outputs = run.task.predicted_texts(examples, progress)
        maps, starts = (np.asarray(examples.columns[name]) for name in ("map", "start"))
        moves = [parse_moves(output) for output in outputs]
        paths = [None if path is None else parse_moves(path) for path in references]
        places = map(tuple, starts.tolist())
        episodes = [*map(EpisodePath, maps, places, moves, paths, instructions)]
        return navigation_payload(str(run.run.path), episodes)


def _load_episodes(
    run: InspectedRun, query: str | None, log: Log
) -> tuple[Examples, list[str], Sequence[str | None]]:
    """Return maps with starts, their instructions, and their paths as text (None where unknown)."""
    if query is None:
        return run.few_held_out(log)
    data_format, data, opened = run.task.data_format, run.config.data, open_path(query)
    rows, examples, _ = prepare_examples.read_unlabeled(data_format, opened, run.processor, data, log)
    labeled = read_labeled_rows(data_format, opened, data)
    known = {row.location: moves_to_text(row.fields["path"]) for row in labeled}
    instructions = [row.fields["source"] for row in rows]
    return examples, instructions, [known.get(row.location) for row in rows]
