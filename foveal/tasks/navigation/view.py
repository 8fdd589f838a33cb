"""The view `navigation` of a run: the paths that the agent takes for instructions, drawn on maps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.progress import ProgressCallback
from foveal.data import prepare_examples
from foveal.data.core.examples import Examples
from foveal.data.open import open_path
from foveal.data.prepare_examples import read_labeled_rows
from foveal.inspection.base import Facts, InspectedRun, View
from foveal.inspection.registry import register_view
from foveal.tasks.navigation.grid_world import moves_to_text, parse_moves
from foveal.tasks.navigation.plot import EpisodePath, plot_episodes
from foveal.tasks.navigation.task import NavigationTask


@dataclass(frozen=True)
class NavigationOptions:
    query: str | None = None
    """Maps with instructions; a few of the run's held-out ones if not given."""


@dataclass(frozen=True)
class NavigationResult:
    run: str
    episodes: Sequence[EpisodePath]

    def to_json(self) -> dict[str, Any]:
        return {"run": self.run, "episodes": self._episodes_json()}

    def sections(self) -> Iterator[Facts]:
        for episode in self._episodes_json():
            yield [(name, value) for name, value in episode.items() if value is not None]

    def _episodes_json(self) -> list[dict[str, str | None]]:
        episodes = []
        for episode in self.episodes:
            right = None if episode.reference is None else moves_to_text(episode.reference)
            moves = moves_to_text(episode.moves)
            episodes.append({"instruction": episode.instruction, "moves": moves, "right": right})
        return episodes


@register_view
class NavigationView(View[NavigationOptions, NavigationResult]):
    name = "navigation"
    summary = "The paths that a run takes by instructions, drawn on maps."
    Options = NavigationOptions
    progress = "maps read"

    def check(self, run: InspectedRun) -> None:
        if not isinstance(run.task, NavigationTask):
            raise UserError(f"{run.run.path}: this run follows no instructions (task {run.task.name})")

    def compute(
        self, run: InspectedRun, options: NavigationOptions, log: Log, progress: ProgressCallback
    ) -> NavigationResult:
        examples, instructions, references = _load_episodes(run, options.query, log)
        outputs = run.task.predicted_texts(examples, progress)
        maps, starts = (np.asarray(examples.columns[name]) for name in ("map", "start"))
        moves = [parse_moves(output) for output in outputs]
        paths = [None if path is None else parse_moves(path) for path in references]
        places = map(tuple, starts.tolist())
        episodes = [*map(EpisodePath, maps, places, moves, paths, instructions)]
        return NavigationResult(str(run.run.path), episodes)

    def plot(self, result: NavigationResult) -> bytes:
        return plot_episodes(result.episodes)


def _load_episodes(
    run: InspectedRun, query: str | None, log: Log
) -> tuple[Examples, list[str], Sequence[str | None]]:
    """Return maps with starts, their instructions, and their paths as text (None where unknown)."""
    if query is None:
        return run.few_held_out()
    data_format, data, opened = run.task.data_format, run.config.data, open_path(query)
    rows, examples, _ = prepare_examples.read_unlabeled(data_format, opened, run.processor, data, log)
    labeled = read_labeled_rows(data_format, opened, data)
    known = {row.location: moves_to_text(row.fields["path"]) for row in labeled}
    instructions = [row.fields["source"] for row in rows]
    return examples, instructions, [known.get(row.location) for row in rows]
