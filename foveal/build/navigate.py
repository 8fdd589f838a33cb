"""Instructions and maps to moves: show, attend and act."""

from collections.abc import Iterator

import numpy as np

from foveal.build.examples import ExampleKind, usual_vocabulary
from foveal.build.kind import Chosen, Described, Judged
from foveal.config import Config
from foveal.data import walks
from foveal.data.batching import ExampleBatch
from foveal.data.buckets import gather
from foveal.data.examples import Examples
from foveal.data.grid_world import MOVES, SIDE, TILE, spelled
from foveal.data.marks import Marks
from foveal.data.part import Part
from foveal.data.prepared import Prepared
from foveal.data.walks import WalkInputs
from foveal.models.navigate import Walker, walker
from foveal.scores.navigation import path_moves, spl, success
from foveal.tasks.navigate import NavigateTask, ReinforcedNavigateTask, Walk, arrived
from foveal.tasks.shown import Shown
from foveal.training.watch import Watch, every_batch

PREVIEWED = 3


class NavigateKind(ExampleKind):
    """An encoder of the instruction, and a recurrent network that sees, reads and moves."""

    def __init__(self) -> None:
        super().__init__(walks)

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
