"""Micro-batches equal one big batch, though each is padded for itself and some rows have no loss."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
import torch

from foveal.config import OptimizerConfig
from foveal.data.core.batching import ExampleBatch
from foveal.tasks.navigation.generated_episodes import random_episode
from foveal.tasks.navigation.objective import NavigationObjective
from foveal.tasks.registry import task_of
from foveal.tasks.vqa.answer_formats import IGNORE_INDEX, VQAClassificationProcessor
from foveal.tasks.vqa.vqa_examples import VQAProcessor
from foveal.training.optim import Optimizer
from foveal.training.step import StepResult, train_step
from tests.tasks.navigation.episodes import CORRIDOR, LONGER, batch_of, model_of, part_of
from tests.tasks.vqa.test_model import SEEN, batch, config, drawn

SGD = OptimizerConfig(name="sgd", clip_norm=0.0)


def trained(objective: Any, batches: Sequence[ExampleBatch]) -> StepResult:
    """One step on micro-batches."""
    carries, optimizer = [None] * len(batches), Optimizer(objective.model, SGD)
    done, _ = train_step(objective.model, objective, optimizer, batches, carries, lr=0.5, seed=(0,))
    assert done.first_nonfinite is None
    assert done.gradient_norm > 1e-3
    return done


def check_same(tasks: Sequence[Any], parts: Sequence[ExampleBatch], whole: ExampleBatch) -> StepResult:
    """Two equal tasks, one trained on the parts and one on the whole."""
    few, one = trained(tasks[0], parts), trained(tasks[1], [whole])
    assert (few.loss, few.gradient_norm) == pytest.approx((one.loss, one.gradient_norm), abs=1e-10)
    assert few.metrics == pytest.approx(one.metrics, abs=1e-10)
    for first, second in zip(*(task.model.parameters() for task in tasks), strict=True):
        torch.testing.assert_close(first, second, rtol=0, atol=1e-10)
    return few


def test_walks_on_maps_of_several_sizes() -> None:
    chance = Random(3)
    rows = [LONGER, CORRIDOR, *(random_episode(chance) for _ in range(3))]
    whole, inputs = part_of(*rows)
    parts = [part_of(*some, processor=inputs)[0] for some in (rows[:2], rows[2:])]
    shapes = [batch_of(part).columns[name].shape[1:] for part in parts for name in ("map", "target")]
    assert len({*shapes}) == 4
    tasks = [NavigationObjective(model_of(inputs).double(), inputs.length_limit) for _ in range(2)]
    check_same(tasks, [batch_of(part) for part in parts], batch_of(whole))


def rows_of(given: ExampleBatch, rows: list[int]) -> ExampleBatch:
    """These rows alone, without the images and the padding that only others need."""
    which = torch.tensor(rows)
    lengths = {name: held if name == "choice" else held[which] for name, held in given.lengths.items()}
    images, of = given.columns["source_of"][which].unique(return_inverse=True)
    columns = {
        "source": given.columns["source"][images],
        "source_of": of,
        "choice": given.columns["choice"],
    }
    columns["label"] = given.columns["label"][which]
    for name in ("question", "history", "choices"):
        columns[name] = given.columns[name][which, : int(lengths[name].max())]
    return ExampleBatch(which, columns, lengths, len(rows))


@pytest.mark.parametrize("name", ["vqa", "vqa-multiple-choice"])
def test_questions_of_which_one_has_an_answer_that_is_not_known(name: str) -> None:
    """It has no loss, and does not count among those over which the mean is taken."""
    processor = VQAClassificationProcessor(*SEEN, ("x", "y", "z")) if name == "vqa" else VQAProcessor(*SEEN)
    task, whole = task_of(config(name)).bound(processor), batch()
    whole.columns["label"][0] = IGNORE_INDEX
    objectives = [task.bound(processor, drawn(task.new_model())).objective() for _ in range(3)]
    few = check_same(objectives[:2], [rows_of(whole, [0, 2]), rows_of(whole, [1])], whole)
    assert few.loss == pytest.approx(trained(objectives[2], [rows_of(whole, [1, 2])]).loss, abs=1e-10)
