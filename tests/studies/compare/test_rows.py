"""The losses of rows add up to the loss of an evaluation, and resampled rows to honest intervals."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from foveal.core.errors import UserError
from foveal.core.progress import no_progress
from foveal.studies.compare import by_length, sequences
from foveal.studies.compare.by_length import costs_by_length
from foveal.studies.compare.by_position import losses_by_position
from foveal.studies.compare.report import comparison_payload
from foveal.studies.compare.rows import resampled_mean, row_losses
from foveal.studies.compare.sequences import sequence_facts
from foveal.studies.compare.step_size import step_memory, training_flops
from foveal.tasks.session import Session
from foveal.training.evaluate import evaluate
from tests.support.comparisons import comparison
from tests.support.untrained_runs import CORPUS, KINDS, SENTENCES, SMALL_STACK, UntrainedRun, untrained_run

STACK = tuple(f"model.{setting}" for setting in SMALL_STACK)


def check_rows(run: UntrainedRun, rows: int) -> None:
    losses = row_losses(run, run.prepared.held_out, no_progress)
    assert len(losses) == rows
    sums, weights = np.array([*losses.values()]).T
    batches = run.task.eval_batches(run.prepared.held_out)
    whole = evaluate(run.model, run.objective, batches)
    assert sums.sum() / weights.sum() == pytest.approx(whole["loss"], rel=1e-5)


@pytest.fixture
def three_lengths(monkeypatch: pytest.MonkeyPatch) -> tuple[int, ...]:
    monkeypatch.setattr(by_length, "LENGTHS", (4, 8, 16))
    monkeypatch.setattr(by_length, "GENERATED_TOKENS", 3)
    return by_length.LENGTHS


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_task_has_losses_of_rows_and_steps_that_can_be_counted(kind, three_lengths):
    run = KINDS[kind]()
    check_rows(run, len(row_losses(run, run.prepared.held_out, no_progress)))
    assert training_flops(run.config, run.prepared) > 0
    assert step_memory(run.config, run.prepared) > 0
    costs = costs_by_length(run.config, run.prepared, torch.device("cpu"))
    assert bool(costs) == bool(run.task.length_setting)
    if run.task.sequence:
        assert np.isfinite([*losses_by_position(run, run.prepared.held_out).values()]).all()


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


def test_the_state_of_attention_grows_with_the_text_and_others_do_not(three_lengths):
    """A key and a value of 16 numbers of 4 bytes for each token; h and c of an LSTM."""
    Path("notes.txt").write_text("".join(f"{line}.\n" for line in SENTENCES * 10))
    sizes = {}
    for preset in ("attention", "lstm"):
        run = untrained_run("notes.txt", preset, *STACK, *CORPUS)
        costs = costs_by_length(run.config, run.prepared, torch.device("cpu"))
        sizes[preset] = [cost.state for cost in costs]
    assert sizes["attention"] == [2 * 16 * 4 * length for length in three_lengths]
    assert sizes["lstm"] == [2 * 16 * 4] * 3


def test_losses_by_position_of_targets_are_those_of_all_their_tokens():
    run = pairs_run("gru")
    losses = losses_by_position(run, run.prepared.held_out)
    lengths = run.task.eval_batches(run.prepared.held_out).batch(0, 0).target_lengths
    positions = np.concatenate([np.arange(1, length + 1) for length in lengths.tolist()])
    ranges = np.searchsorted([*losses], positions, "right") - 1
    mean = evaluate(run.model, run.objective, run.task.eval_batches(run.prepared.held_out))["loss"]
    assert np.average([*losses.values()], weights=np.bincount(ranges)) == pytest.approx(mean, rel=1e-5)


def pairs_run(mixer: str, *settings: str) -> UntrainedRun:
    """Return a translation of few sentences whose encoder and decoder have a mixer."""
    rows = (f"{line}\t{line[::-1]}\n" for line in SENTENCES * 2)
    Path("pairs.tsv").write_text("source\ttarget\n" + "".join(rows))
    small = [f"{stack}{each}" for stack in ("model.", "model.encoder.") for each in SMALL_STACK]
    mixers = f"model.mixers={mixer}+cross", f"model.encoder.mixers={mixer}"
    tokens = "data.tokenizer=character", "model.cross.heads=2", "data.test_fraction=0.3"
    return untrained_run("pairs.tsv", "translation", *small, *mixers, *tokens, *settings)


def test_costs_of_a_language_model_by_the_length_of_its_context(three_lengths):
    Path("notes.txt").write_text("".join(f"{line}.\n" for line in SENTENCES * 2))
    run = untrained_run("notes.txt", "attention", *STACK, "model.attention.heads=2", *CORPUS)
    costs = costs_by_length(run.config, run.prepared, torch.device("cpu"))
    assert tuple(cost.length for cost in costs) == three_lengths
    assert costs[2].flops - costs[1].flops == 3 * 4 * (16 - 8) * 16  # twice the products of T x width
    assert min(cost.training_speed for cost in costs) > 0
    assert min(cost.generation_speed for cost in costs) > 0


def test_costs_of_a_translation_by_the_length_of_source_and_target(three_lengths):
    heads = "model.attention.heads=2", "model.encoder.attention.heads=2"
    attention, recurrence = (
        costs_by_length(run.config, run.prepared, torch.device("cpu"))
        for run in (pairs_run("attention", *heads), pairs_run("gru"))
    )
    assert tuple(cost.length for cost in attention) == three_lengths
    products = 3 * 4 * (16 - 8) * 16
    assert attention[2].flops - attention[1].flops == 3 * products  # encoder, decoder, and between them
    assert recurrence[2].flops - recurrence[1].flops == products
    assert min(cost.generation_speed for cost in (*attention, *recurrence)) > 0


def test_costs_that_cannot_be_measured_leave_a_report_without_them(three_lengths, monkeypatch):
    def no_memory(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(by_length, "dry_run", no_memory)
    of, run = comparison(gru=[1.0, 1.1, 1.2]), pairs_run("gru")
    facts = sequence_facts(of.models, lambda path: run, print, no_progress)
    payload = comparison_payload(replace(of, sequences=facts))
    assert ("not measured", "gru by length: RuntimeError: out of memory") in payload.facts
    titles = [panel.title for panel in payload.panels]
    assert "loss by position in the target" in titles
    assert not [title for title in titles if "by length" in title]
    assert "far context" not in dict(payload.facts)["conclusions"]


def test_losses_that_a_plugin_does_not_have_leave_the_trainings(three_lengths, monkeypatch):
    def missing(*_: object) -> None:
        raise AttributeError("no log_probabilities")

    monkeypatch.setattr(sequences, "losses_by_position", missing)
    of, run = comparison(gru=[1.0, 1.1, 1.2]), pairs_run("gru")
    facts = sequence_facts(of.models, lambda path: run, lambda line: None, no_progress)
    assert facts is not None
    assert facts.costs["gru"]
    by_position = [error for name, error in facts.errors.items() if name.endswith(" by position")]
    assert by_position == ["AttributeError: no log_probabilities"] * 3


def test_runs_that_can_not_be_opened_leave_the_trainings():
    def changed(path: Path) -> Session:
        raise UserError("pairs.tsv: has changed")

    of = comparison(gru=[1.0, 1.1, 1.2])
    facts = sequence_facts(of.models, changed, lambda line: None, no_progress)
    payload = comparison_payload(replace(of, sequences=facts))
    lines = [text for name, text in payload.facts if name == "not measured"]
    assert lines == [
        f"{run.path} by length and position: UserError: pairs.tsv: has changed" for run in of.models[0].runs
    ]


def test_rows_without_length_have_no_costs_by_length():
    Path("rows.csv").write_text("text,label\n" + "".join(f"{line},a\n{line}s,b\n" for line in SENTENCES))
    settings = (f"model.encoder.{each}" for each in SMALL_STACK)
    run = untrained_run("rows.csv", "text-classification", *settings)
    assert costs_by_length(run.config, run.prepared, torch.device("cpu")) == []


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
