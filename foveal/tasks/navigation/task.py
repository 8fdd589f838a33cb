"""From an instruction and a map to moves: the agent sees, attends and acts."""

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from foveal.core.progress import ProgressCallback
from foveal.data.core.batching import ExampleBatch
from foveal.data.core.examples import Examples
from foveal.data.core.length_buckets import collate_examples
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.open import OpenedData
from foveal.data.pairs.pair import PairProcessor
from foveal.data.text.special_tokens import SpecialTokens
from foveal.models.mixer_settings import samples_positions
from foveal.models.stack_settings import VECTOR_STACK, keys_below
from foveal.objectives.preview import PreviewExamples
from foveal.tasks.base import TaskSettings
from foveal.tasks.baseline import Baseline
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.navigation.datasets import GRID_WALKS
from foveal.tasks.navigation.grid_world import MOVES, TILE_PIXELS, VIEW_SIDE, moves_to_text
from foveal.tasks.navigation.map_source import MapSource, MovesTarget
from foveal.tasks.navigation.metrics import path_moves, spl, success
from foveal.tasks.navigation.model import NavigationAgent, navigation_agent
from foveal.tasks.navigation.objective import (
    NavigationObjective,
    ReinforceNavigationObjective,
    reached_goal,
)
from foveal.tasks.navigation.random_walk import random_walks_arrive
from foveal.tasks.results import Answer, EvaluationResult, LabelsByRow, TaskSummary
from foveal.tasks.shapes.examples import ExampleTask, default_vocab_size
from foveal.tasks.shapes.text_target import written_answer

NUM_PREVIEWS = 3


class NavigationSettings(TaskSettings):
    supervision: Literal["imitation", "reinforce"] = "imitation"
    """How the agent learns: imitation (of the paths in the data) or reinforce (from its own walks)."""


class Rollout(NamedTuple):
    """The likeliest moves of the agent on a map."""

    moves: list[int]
    log_probability: float
    arrived: bool
    steps_taken: int


class NavigationTask(ExampleTask):
    """An encoder of the instruction, and a recurrent network that sees views, reads the instruction, and
    moves."""

    name = "navigation"
    purpose = "Walk on a map by an instruction."
    preset = "navigation"
    Settings = NavigationSettings
    settings: NavigationSettings
    refused_settings: ClassVar[Mapping[str, str]] = {"label_smoothing": "the moves are those of the path"}
    source = MapSource()
    target = MovesTarget()
    source_kind = "map"
    target_kind = "moves"
    encoders = ("text",)
    datasets = (GRID_WALKS.name,)
    balances_experts = False
    writes_answers = True
    loss_unit, speed_unit = "move", "moves"
    length_unit = "moves"
    suggested_view = "navigation"

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 11 for a table of maps with instructions."""
        if data.kind != "table" or not {"map", "instruction"} <= data.columns:
            return NO_FIT
        return Fit(11, "there are the columns map and instruction")

    def settings_read(self) -> set[str]:
        return super().settings_read() | keys_below("model", VECTOR_STACK)

    def check(self) -> None:
        super().check()
        if samples_positions(self.config.model):
            raise ValueError("a walk draws its moves, not where it looks: set model.attention_rnn.hard=false")

    def new_model(self) -> NavigationAgent:
        return self._model_for_vocab(self.processor.source.size)

    def example_model(self) -> NavigationAgent:
        return self._model_for_vocab(default_vocab_size(self.config))

    def _model_for_vocab(self, size: int) -> NavigationAgent:
        vocabulary, max_length = SpecialTokens(size).vocab_size, self.config.data.max_length
        return navigation_agent(self.config.model, vocabulary, max_length, VIEW_SIDE, TILE_PIXELS, len(MOVES))

    def objective(self, preview_examples: SplitData[Examples] | None = None) -> NavigationObjective:
        previews = None
        if preview_examples is not None:
            rows = np.arange(min(NUM_PREVIEWS, len(preview_examples)))
            batch = collate_examples(preview_examples.examples, rows)
            previews = PreviewExamples(batch, [*preview_examples.sources[: len(rows)]], moves_to_text)
        make = ReinforceNavigationObjective if self._reinforces else NavigationObjective
        return make(self.model, self.processor.target.length_limit, previews)

    @property
    def _reinforces(self) -> bool:
        return self.settings.supervision == "reinforce"

    @property
    def first_loss_unit(self) -> str:
        return "of the reward missed," if self._reinforces else super().first_loss_unit

    def with_smooth_loss(self) -> "NavigationTask":
        """Return the task with imitation, because REINFORCE has no gradient if all rollouts are the same."""
        table = self.config.task.model_copy(update={"supervision": "imitation"})
        config = self.config.model_copy(update={"task": table})
        return NavigationTask(config, self.processor, self.model)

    @property
    def num_outcomes(self) -> int | None:
        return None if self._reinforces else len(MOVES)

    def summarize(self, prepared: PreparedData[PairProcessor, SplitData[Examples]]) -> TaskSummary:
        source, limit = prepared.processor.source, prepared.processor.target.length_limit.for_source(0)
        task = f"{self.name}: {source.size:,} {source.kind} tokens and views to at most {limit} moves"
        way = "REINFORCE" if self._reinforces else "imitation of the paths"
        return TaskSummary("maps with instructions", f"{task}, by {way}", self.num_outcomes, self.speed_unit)

    def answers(self, examples: Examples, top: int, progress: ProgressCallback) -> list[Answer]:
        """Return the likeliest moves. There is only a single rollout, so `top` adds nothing."""
        return [
            written_answer([moves_to_text(each.moves)], [each.log_probability / max(1, len(each.moves))])
            for each in self._rollouts(examples, progress, has_goals=False)
        ]

    def score(
        self, data: SplitData[Examples], predicted: LabelsByRow, progress: ProgressCallback
    ) -> EvaluationResult:
        """Return success, SPL and number of moves of the likeliest rollouts, relative to each row's shortest
        path."""
        rollouts = self._rollouts(data.examples, progress, has_goals=True)
        outputs = [moves_to_text(each.moves) for each in rollouts]
        arrived, steps_taken = [each.arrived for each in rollouts], [each.steps_taken for each in rollouts]
        scores = [success(arrived), spl(arrived, data.lengths, steps_taken), path_moves(steps_taken)]
        return EvaluationResult(data.sources, data.references, outputs, data.lengths, scores)

    def baseline(self, train: SplitData[Examples], held_out: SplitData[Examples]) -> Baseline:
        """Return the success of walks whose moves are drawn at the rates of the training paths."""
        longest, seed = self.processor.target.length_limit.for_source(0), self.config.training.seed
        arrived = random_walks_arrive(train.examples, held_out.examples, longest, seed)
        name = "a random walk, with moves as often as in training"
        return Baseline.of(name, success(arrived))

    def _rollouts(self, examples: Examples, progress: ProgressCallback, has_goals: bool) -> list[Rollout]:
        """Return the rollout of each row, in the examples' order. Without a goal, none arrives."""
        objective = self.objective()

        def rollouts(batch: ExampleBatch) -> list[Rollout]:
            trajectory = objective.predict_batch(batch)
            reached = (
                reached_goal(batch, trajectory)
                if has_goals
                else trajectory.stopped.new_zeros(len(batch.rows))
            )
            steps = trajectory.steps_taken.tolist()
            return [*map(Rollout, trajectory.rows(), trajectory.log_prob.tolist(), reached.tolist(), steps)]

        return self.by_row(self.example_batches(examples), rollouts, progress)
