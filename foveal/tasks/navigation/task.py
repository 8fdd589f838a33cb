"""Instructions and maps to moves: show, attend and act."""

from collections.abc import Iterator

import numpy as np

from foveal.config import Config
from foveal.core.progress import Watch, every_batch
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.data.core.length_buckets import gather
from foveal.data.core.prepared_data import Prepared
from foveal.data.core.split_data import Part
from foveal.data.text.special_tokens import Marks
from foveal.objectives.preview import Shown
from foveal.tasks.base import Chosen, Described, Judged
from foveal.tasks.examples import ExampleKind, usual_vocabulary
from foveal.tasks.navigation import navigation_examples
from foveal.tasks.navigation.grid_world import MOVES, SIDE, TILE, spelled
from foveal.tasks.navigation.metrics import path_moves, spl, success
from foveal.tasks.navigation.model import Walker, walker
from foveal.tasks.navigation.navigation_examples import WalkInputs
from foveal.tasks.navigation.objective import NavigateTask, ReinforcedNavigateTask, Walk, arrived

PREVIEWED = 3


class NavigateKind(ExampleKind):
    """An encoder of the instruction, and a recurrent network that sees, reads and moves."""

    def __init__(self) -> None:
        super().__init__(navigation_examples)

    def model(self, config: Config, inputs: WalkInputs) -> Walker:
        return self._of_size(config, inputs.source.size)

    def outline(self, config: Config) -> Walker:
        return self._of_size(config, usual_vocabulary(config))

    def _of_size(self, config: Config, size: int) -> Walker:
        vocabulary = Marks(size).vocabulary
        return walker(config.model, vocabulary, config.data.longest, SIDE, TILE, len(MOVES))

    def task(
        self, config: Config, model: Walker, inputs: WalkInputs, shown: Part[Examples] | None = None
    ) -> NavigateTask:
        previews = None
        if shown is not None:
            rows = np.arange(min(PREVIEWED, len(shown)))
            batch = gather(shown.examples, rows)
            previews = Shown(batch, [shown.sources[row] for row in rows], spelled)
        make = ReinforcedNavigateTask if config.task.signal == "reinforce" else NavigateTask
        return make(model, inputs.room, previews)

    def describe(self, config: Config, data: Prepared[WalkInputs, Part[Examples]]) -> Described:
        tokens, limit = data.inputs.source.size, data.inputs.room.of(0)
        learnt = config.task.signal == "imitation"
        told = f"navigate: {tokens:,} {data.inputs.source.kind} tokens and views to at most {limit} moves"
        way = "imitation of the paths" if learnt else "REINFORCE"
        return Described(
            "maps with instructions", f"{told}, by {way}", len(MOVES) if learnt else None, "moves"
        )

    def found(
        self, config: Config, model: Walker, inputs: WalkInputs, examples: Examples, watch: Watch
    ) -> list[str]:
        outputs = [""] * len(examples)
        for batch, walk in self._walks(config, model, inputs, examples, watch):
            for row, moves in zip(batch.rows.tolist(), walk.rows(), strict=True):
                outputs[row] = spelled(moves)
        return outputs

    def judge(
        self,
        config: Config,
        model: Walker,
        inputs: WalkInputs,
        data: Part[Examples],
        chosen: Chosen,
        watch: Watch,
    ) -> Judged:
        """Success, SPL and moves of the likeliest walks; by the fewest moves of each."""
        outputs, ended, taken = [""] * len(data), [False] * len(data), [0] * len(data)
        for batch, walk in self._walks(config, model, inputs, data.examples, watch):
            found = map(spelled, walk.rows()), arrived(batch, walk).tolist(), walk.taken.tolist()
            for row, *one in zip(batch.rows.tolist(), *found, strict=True):
                outputs[row], ended[row], taken[row] = one
        scores = [success(ended), spl(ended, data.lengths, taken), path_moves(taken)]
        return Judged(data.sources, data.answers, outputs, data.lengths, scores)

    def _walks(
        self, config: Config, model: Walker, inputs: WalkInputs, examples: Examples, watch: Watch
    ) -> Iterator[tuple[ExampleBatch, Walk]]:
        """Each batch once, and how it is walked."""
        work, order = self.task(config, model, inputs), self.once(config, examples)
        for batch in every_batch(order, watch):
            yield batch, work.predict(batch)
