"""The tensors of a step on fake tensors are those of a real step."""

from pathlib import Path

import pytest
import torch

from foveal.data.open import DataPaths
from foveal.studies.plan.step_memory import counted_memory, memory_on
from foveal.tasks.config import load_config
from foveal.tasks.registry import task_of
from tests.support.small_texts import sentences

SMALL = ("model.width=32", "model.layers=2", "data.context_length=32", "data.batch_tokens=512")


@pytest.mark.parametrize(
    ("preset", "settings"),
    [
        ("lstm", ()),
        ("gru", ()),
        ("attention", ("training.activation_checkpointing=true", "training.ema_decay=0.9")),
        ("mamba", ()),
        ("masked-lm", ("model.encoder.width=32", "model.encoder.layers=1")),
    ],
)
def test_counted_is_what_a_step_takes(preset: str, settings: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n".join(sentences() * 4))
    config = load_config(preset, [*SMALL, *settings] if preset != "masked-lm" else [*SMALL[2:], *settings])
    prepared = task_of(config).prepare(DataPaths(str(tmp_path / "text.txt")), lambda line: None)
    task = task_of(config).bind(prepared.processor)
    task = task.bind(prepared.processor, task.new_model())
    batch = task.train_batches(prepared.train).batch(0, 0)
    before = [weight.clone() for weight in task.model.parameters()]
    counted = counted_memory(task, batch)
    assert all(map(torch.equal, before, task.model.parameters()))
    measured = memory_on(task, batch)
    assert counted.total() == pytest.approx(measured.total(), rel=0.02)
    assert counted["gradients"] == measured["gradients"]
    assert counted["averages"] == measured["averages"]
