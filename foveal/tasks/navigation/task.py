"""Instructions and maps to moves: show, attend and act."""

from collections.abc import Iterator

import numpy as np

from foveal.config import Config
from foveal.core.progress import ProgressCallback, iterate_batches
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.data.core.length_buckets import collate_examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.text.special_tokens import SpecialTokens
from foveal.objectives.preview import PreviewExamples
from foveal.tasks.base import EvaluationResult, PredictedIds, TaskSummary
from foveal.tasks.examples import ExampleTask, default_vocab_size
from foveal.tasks.navigation import navigation_examples
from foveal.tasks.navigation.grid_world import MOVES, TILE_PIXELS, VIEW_SIDE, moves_to_text
from foveal.tasks.navigation.metrics import path_moves, spl, success
from foveal.tasks.navigation.model import NavigationAgent, navigation_agent
from foveal.tasks.navigation.navigation_examples import NavigationProcessor
from foveal.tasks.navigation.objective import (
    NavigationObjective,
    ReinforceNavigationObjective,
    Trajectory,
    reached_goal,
)

NUM_PREVIEWS = 3


class NavigationTask(ExampleTask):
    """An encoder of the instruction, and a recurrent network that sees, reads and moves."""

    def __init__(self) -> None:
        super().__init__(navigation_examples)

    def model(self, config: Config, processor: NavigationProcessor) -> NavigationAgent:
        return self._model_for_vocab(config, processor.source.size)

    def model_of_default_size(self, config: Config) -> NavigationAgent:
        return self._model_for_vocab(config, default_vocab_size(config))

    def _model_for_vocab(self, config: Config, size: int) -> NavigationAgent:
        vocabulary = SpecialTokens(size).vocab_size
        return navigation_agent(
            config.model, vocabulary, config.data.max_length, VIEW_SIDE, TILE_PIXELS, len(MOVES)
        )

    def objective(
        self,
        config: Config,
        model: NavigationAgent,
        processor: NavigationProcessor,
        preview_examples: SplitData[Examples] | None = None,
    ) -> NavigationObjective:
        previews = None
        if preview_examples is not None:
            rows = np.arange(min(NUM_PREVIEWS, len(preview_examples)))
            batch = collate_examples(preview_examples.examples, rows)
            previews = PreviewExamples(batch, [preview_examples.sources[row] for row in rows], moves_to_text)
        make = ReinforceNavigationObjective if config.task.supervision == "reinforce" else NavigationObjective
        return make(model, processor.length_limit, previews)

    def summarize(
        self, config: Config, data: PreparedData[NavigationProcessor, SplitData[Examples]]
    ) -> TaskSummary:
        tokens, limit = data.processor.source.size, data.processor.length_limit.for_source(0)
        learnt = config.task.supervision == "imitation"
        told = (
            f"navigation: {tokens:,} {data.processor.source.kind} tokens and views to at most {limit} moves"
        )
        way = "imitation of the paths" if learnt else "REINFORCE"
        return TaskSummary(
            "maps with instructions", f"{told}, by {way}", len(MOVES) if learnt else None, "moves"
        )

    def predicted_texts(
        self,
        config: Config,
        model: NavigationAgent,
        processor: NavigationProcessor,
        examples: Examples,
        progress: ProgressCallback,
    ) -> list[str]:
        outputs = [""] * len(examples)
        for batch, walk in self._trajectories(config, model, processor, examples, progress):
            for row, moves in zip(batch.rows.tolist(), walk.rows(), strict=True):
                outputs[row] = moves_to_text(moves)
        return outputs

    def score(
        self,
        config: Config,
        model: NavigationAgent,
        processor: NavigationProcessor,
        data: SplitData[Examples],
        predicted_ids: PredictedIds,
        progress: ProgressCallback,
    ) -> EvaluationResult:
        """Success, SPL and moves of the likeliest walks; by the fewest moves of each."""
        outputs, ended, taken = [""] * len(data), [False] * len(data), [0] * len(data)
        for batch, walk in self._trajectories(config, model, processor, data.examples, progress):
            found = (
                map(moves_to_text, walk.rows()),
                reached_goal(batch, walk).tolist(),
                walk.steps_taken.tolist(),
            )
            for row, *one in zip(batch.rows.tolist(), *found, strict=True):
                outputs[row], ended[row], taken[row] = one
        scores = [success(ended), spl(ended, data.lengths, taken), path_moves(taken)]
        return EvaluationResult(data.sources, data.references, outputs, data.lengths, scores)

    def _trajectories(
        self,
        config: Config,
        model: NavigationAgent,
        processor: NavigationProcessor,
        examples: Examples,
        progress: ProgressCallback,
    ) -> Iterator[tuple[ExampleBatch, Trajectory]]:
        """Each batch once, and how it is walked."""
        work, order = self.objective(config, model, processor), self.example_batches(config, examples)
        for batch in iterate_batches(order, progress):
            yield batch, work.predict_batch(batch)
