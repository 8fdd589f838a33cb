"""Ranks that share the batches of any task have the scores and the answers of one process, bit for bit."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from foveal.api.evaluation import evaluate_run
from foveal.core.progress import no_progress
from foveal.core.runtime import seed_everything
from foveal.core.signals import SignalHandler
from foveal.distributed.world import World
from foveal.generation.options import SamplingOptions
from foveal.generation.request import GenerateRequest
from foveal.training.agreement import ALONE, Agreement, FailedElsewhere
from foveal.training.share import cut_evenly, share
from tests.support.more_untrained_runs import MORE_KINDS
from tests.support.ranks import run_ranks
from tests.support.untrained_runs import KINDS, UntrainedRun

ALL_KINDS = KINDS | MORE_KINDS
QUICK = ("image-classification", "masked-lm", "tagging", "translation", "vqa", "navigation")
"""Kinds whose batches differ; the others are tested in the long run."""
SIZES = (2, 3)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def share_out(world: World, count: int) -> tuple[list[int], list[int]]:
    """Return the results of a rank, and the indices that it computed itself."""
    computed = list[int]()

    def work(index: int) -> int:
        computed.append(index)
        return 10 * index

    return [*share(count, work, no_progress, Agreement(world, SignalHandler()))], computed


@pytest.mark.parametrize("count", [0, 1, 3, 7])
def test_each_result_is_used_once_and_all_are_in_order(count: int) -> None:
    """All ranks compute equally often, since those that share the weights compute together."""
    ranks = run_ranks(3, share_out, count)
    assert [results for results, _ in ranks] == 3 * [[10 * index for index in range(count)]]
    rounds = -(-count // 3)
    assert [len(computed) for _, computed in ranks] == 3 * [rounds]
    assert sorted(index for _, computed in ranks for index in computed)[:count] == [*range(count)]


def test_numbers_are_cut_evenly() -> None:
    assert cut_evenly(7, 3) == [range(2), range(2, 4), range(4, 7)]
    assert cut_evenly(2, 3) == [range(1), range(1, 2)]


def fail_together(world: World, failing: Sequence[int]) -> str:
    together = Agreement(world, SignalHandler())
    if world.rank in failing:
        return "says why" if together.leave() else "is silent"
    try:
        together.exchange("a result")
    except FailedElsewhere:
        return "is told"
    return "knows nothing"


def test_the_first_rank_that_fails_says_why() -> None:
    assert run_ranks(3, fail_together, (1, 2)) == ["is told", "says why", "is silent"]


def small_batches(run: UntrainedRun) -> UntrainedRun:
    """Return the run with batches of a few rows, and more rows to evaluate, so that there are several."""
    data = run.config.data
    images = data.image.model_copy(update={"batch_size": 2})
    data = data.model_copy(update={"image": images, "batch_tokens": max(48, data.context_length)})
    task = run.task.with_config(run.config.model_copy(update={"data": data}))
    prepared = run.prepared
    if task.target_kind != "nothing":
        prepared = replace(prepared, test=prepared.train)
    return UntrainedRun(run.run, task, task.objective(), prepared)


def use(run: UntrainedRun, together: Agreement) -> tuple[Any, Any]:
    """Return the scores of a run, and its answers to the training split if it answers any."""
    shared = run.shared_by(together)
    seed_everything(0, "answers")
    scores = evaluate_run(shared, None).to_json(shared)
    if not hasattr(run.task, "answers") or run.task.target_kind == "nothing":
        return scores, None
    return scores, shared.task.answers(run.prepared.train.examples, 2, no_progress)


def use_alone_and_shared(world: World, kind: str, folder: Path) -> tuple[Any, Any]:
    path = folder / str(world.rank)
    path.mkdir(parents=True)
    os.chdir(path)
    torch.manual_seed(0)
    run = small_batches(ALL_KINDS[kind]())
    return use(run, ALONE), use(run, Agreement(world, SignalHandler()))


@pytest.mark.parametrize(
    "kind",
    [*QUICK, *(pytest.param(kind, marks=pytest.mark.slow) for kind in sorted(ALL_KINDS.keys() - {*QUICK}))],
)
@pytest.mark.parametrize("size", SIZES)
def test_scores_and_answers_are_those_of_one_process(kind: str, size: int, folder: Path) -> None:
    for alone, shared in run_ranks(size, use_alone_and_shared, kind, folder):
        assert repr(shared) == repr(alone)  # NaN is equal to itself there


def texts_of(world: World, kind: str, options: dict[str, Any], folder: Path) -> list[list[str]]:
    """Return the texts that a run generates alone, and with the other ranks."""
    path = folder / str(world.rank)
    path.mkdir(parents=True)
    os.chdir(path)
    run: Any = ALL_KINDS[kind]()
    request = GenerateRequest("run", **options)
    both = []
    for together in (ALONE, Agreement(world, SignalHandler())):
        events = run.shared_by(together).task.generate(request, print, no_progress)
        both.append([event.text for event in events if hasattr(event, "json") and hasattr(event, "row")])
    return both


PROMPTS = ("the big", "old", "sad red cat", "a dog", "tree")
SOME = SamplingOptions(temperature=1.0, samples=3)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("language-model", {"prompt": PROMPTS, "tokens": 8, "sampling": SOME}),
        ("language-model", {"prompt": "the", "tokens": 8, "sampling": SOME}),
        ("masked-lm", {"prompt": tuple(f"{text} [MASK]" for text in PROMPTS)}),
    ],
)
def test_generated_texts_are_those_of_one_process(kind: str, options: dict[str, Any], folder: Path) -> None:
    for alone, shared in run_ranks(2, texts_of, kind, options, folder):
        assert shared == alone
        assert len(alone) == len(set(alone)) > 2
