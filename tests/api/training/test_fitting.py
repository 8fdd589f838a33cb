"""A step that would not fit into the free memory is refused before it is tried, with the batch that fits."""

import re
from pathlib import Path
from typing import Any

import pytest

from foveal.api.training import fitting
from foveal.api.training.batch_sample import BatchSample
from foveal.api.training.fitting import CODE_BYTES, fitting_batch, needed_memory
from foveal.data.core.prepared_data import PreparedData
from foveal.data.open import DataPaths
from foveal.tasks.base import Task
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from tests.support.command_line import run_command, succeed

SETTINGS = ("model.width=32", "model.layers=1", "data.context_length=64", "data.batch_tokens=4096")
MORE = 1_500_000
"""Bytes that are free for steps, of which a batch of these takes several times as many."""


def notes() -> str:
    Path("notes.txt").write_text("A man rides a horse. A dog runs.\n" * 600)
    return "notes.txt"


def ready(data: str) -> tuple[Task, PreparedData[Any, Any]]:
    config = load_config("attention", SETTINGS)
    prepared = task_of(config).prepare(DataPaths(data), lambda line: None)
    task = task_of(config).bind(prepared.processor)
    return task.bind(prepared.processor, task.new_model()), prepared


def memory_of(task: Task, prepared: PreparedData[Any, Any]) -> int:
    needed = needed_memory(task, BatchSample.of(task.train_batches(prepared.train)).largest)
    assert needed is not None
    return needed


def set_free(monkeypatch: pytest.MonkeyPatch, free: int | None) -> None:
    monkeypatch.setattr(fitting, "free_memory_on", lambda device: free)


def test_the_batch_that_is_proposed_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    set_free(monkeypatch, CODE_BYTES + MORE)
    arguments = ("train", notes(), "--model", "attention", *SETTINGS, "--dry-run")
    refused = run_command(*arguments)
    assert refused.code == 2
    told = re.search(r"data\.batch_tokens=(\d+) training\.grad_accumulation=(\d+)$", refused.last)
    assert told is not None, refused.last
    assert int(told[1]) * int(told[2]) == 4096
    succeed(*arguments, *told[0].split())
    assert run_command(*arguments, f"data.batch_tokens={2 * int(told[1])}").code == 2


@pytest.mark.slow
def test_the_proposal_is_the_largest_half_that_fits() -> None:
    task, prepared = ready(notes())
    sizes = {
        size: memory_of(
            task.with_config(load_config("attention", [*SETTINGS, f"data.batch_tokens={size}"])), prepared
        )
        for size in (2048, 1024)
    }
    assert sizes[2048] > sizes[1024]
    for size, needed in sizes.items():
        proposed = fitting_batch(task, prepared, needed)
        assert proposed == f"data.batch_tokens={size} training.grad_accumulation={4096 // size}"
    assert fitting_batch(task, prepared, CODE_BYTES) is None


@pytest.mark.slow
def test_data_that_are_fewer_than_the_batch_are_halved() -> None:
    """The setting alone changes no batch, and is no reason to add up more of them."""
    task, prepared = ready(notes())
    task = task.with_config(load_config("attention", [*SETTINGS, "data.batch_tokens=1000000"]))
    whole = BatchSample.of(task.train_batches(prepared.train)).largest
    assert whole.tokens < 100_000
    proposed = fitting_batch(task, prepared, memory_of(task, prepared) - 1)
    assert proposed is not None
    size, accumulation = (int(each.partition("=")[2]) for each in proposed.split())
    assert size < whole.tokens
    assert accumulation == 2


def test_without_a_row_that_fits_the_model_is_to_be_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    set_free(monkeypatch, CODE_BYTES)
    refused = run_command("train", notes(), "--model", "attention", *SETTINGS, "--dry-run")
    assert refused.code == 2
    assert "a batch of one row does not fit either: training.activation_checkpointing=true" in refused.last


@pytest.mark.parametrize("free", [None, 1 << 40])
def test_unknown_or_plentiful_memory_refuses_nothing(
    free: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is a step counted, which would take a second."""
    set_free(monkeypatch, free)
    monkeypatch.setattr(fitting, "needed_memory", pytest.fail)
    succeed("train", notes(), "--model", "attention", *SETTINGS[:3], "--budget", "1steps", "--dry-run")


def test_what_cannot_be_counted_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    task, prepared = ready(notes())
    sample = BatchSample.of(task.train_batches(prepared.train))
    set_free(monkeypatch, CODE_BYTES)
    model = task.new_model()
    model.register_forward_pre_hook(lambda module, inputs: inputs[0].sum().numpy())
    monkeypatch.setattr(type(task), "new_model", lambda self: model)
    fitting.check_memory(task, prepared, sample)
