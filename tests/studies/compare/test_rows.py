"""The losses of rows add up to the loss of an evaluation, and resampled rows to honest intervals."""

from pathlib import Path

import numpy as np
import pytest
import torch

from foveal.core.progress import no_progress
from foveal.studies.compare.by_length import costs_by_length
from foveal.studies.compare.by_position import losses_by_position
from foveal.studies.compare.rows import resampled_mean, row_losses
from foveal.studies.compare.step_size import step_memory, training_flops
from foveal.training.evaluate import evaluate
from tests.support.untrained_runs import CORPUS, KINDS, SENTENCES, SMALL_STACK, UntrainedRun, untrained_run

STACK = tuple(f"model.{setting}" for setting in SMALL_STACK)


def check_rows(run: UntrainedRun, rows: int) -> None:
    losses = row_losses(run, run.prepared.held_out, no_progress)
    assert len(losses) == rows
    sums, weights = np.array([*losses.values()]).T
    batches = run.task.eval_batches(run.prepared.held_out)
    whole = evaluate(run.model, run.objective, batches)
    assert sums.sum() / weights.sum() == pytest.approx(whole["loss"], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_task_has_losses_of_rows_and_steps_that_can_be_counted(kind):
    run = KINDS[kind]()
    check_rows(run, len(row_losses(run, run.prepared.held_out, no_progress)))
    assert training_flops(run.config, run.prepared) > 0
    assert step_memory(run.config, run.prepared) > 0


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("settings", [("task.batching=streams",), ("task.batching=windows",)])
def test_rows_of_a_text_are_its_windows_whose_state_is_carried(settings):
    Path("notes.txt").write_text("".join(f"{line}.\n" for line in SENTENCES * 10))
    run = untrained_run("notes.txt", "lstm", *STACK, *CORPUS, *settings)
    batches = run.task.eval_batches(run.prepared.held_out)
    check_rows(run, batches.rows * batches.per_epoch)


def test_losses_by_position_are_those_of_windows_without_history():
    Path("notes.txt").write_text("".join(f"{line}.\n" for line in SENTENCES * 10))
    run = untrained_run("notes.txt", "lstm", *STACK, *CORPUS, "task.batching=windows")
    held_out = run.prepared.held_out
    losses = losses_by_position(run, held_out)
    assert [*losses] == [1, 2, 3, 5, 9]
    sizes = np.array([1, 1, 2, 4, 8])
    mean = evaluate(run.model, run.objective, run.task.eval_batches(held_out))["loss"]
    assert np.average([*losses.values()], weights=sizes) == pytest.approx(mean, rel=0.01)


def test_costs_by_length_leave_out_lengths_that_the_text_does_not_have():
    Path("notes.txt").write_text("".join(f"{line}.\n" for line in SENTENCES * 2))
    run = untrained_run("notes.txt", "attention", *STACK, "model.attention.heads=2", *CORPUS)
    costs = costs_by_length(run.config, run.prepared, torch.device("cpu"))
    assert [cost.length for cost in costs] == [64, 256]
    assert costs[1].flops - costs[0].flops == 3 * 4 * (256 - 64) * 16  # twice the products of T x width
    assert min(cost.training_speed for cost in costs) > 0
    assert min(cost.generation_speed for cost in costs) > 0


def test_rows_of_examples_are_the_examples():
    lines = [f"{line},{('up', 'down')[number % 2]}\n" for number, line in enumerate(SENTENCES * 3)]
    numbered = [f"{number} {line}" for number, line in enumerate(lines)]
    Path("rows.csv").write_text("text,label\n" + "".join(numbered))
    settings = (f"model.encoder.{each}" for each in SMALL_STACK)
    run = untrained_run("rows.csv", "text-classification", *settings, "data.test_fraction=0.2")
    check_rows(run, len(run.prepared.held_out))


def test_the_interval_covers_the_true_mean_as_often_as_it_says():
    draw = np.random.default_rng(0)
    weights = np.full(60, 5.0)
    intervals = [resampled_mean(5 * draw.normal(2, 1, 60), weights) for _ in range(60)]
    assert np.mean([each.low < 2 < each.high for each in intervals]) == pytest.approx(0.94, abs=0.06)
    assert all(each.p_value < 0.01 for each in intervals)


def test_no_difference_has_a_p_value_of_1():
    same = resampled_mean(np.zeros(9), np.ones(9))
    assert (same.value, same.p_value) == (0, 1)
