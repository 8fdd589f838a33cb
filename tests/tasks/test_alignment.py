"""The law of alignment: every task answers row by row, and a row that can't be used keeps its place."""

from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.goldens import MAKERS
from benchmarks.kill import own_cache
from foveal.config.old_names import PRESETS
from foveal.core.progress import no_progress
from foveal.data.open import DataPaths
from foveal.tasks.base import Task
from foveal.tasks.config import load_config
from foveal.tasks.read_settings import read_settings
from foveal.tasks.registry import all_tasks, task_of
from foveal.tasks.results import Answer
from foveal.tasks.session import build_model
from tests.support.spoiled_data import spoil_middle

WRITERS = {PRESETS.get(name, name): write for write, names in MAKERS.items() for name in names.split()}
SMALL = {
    **{"model.layers": 1, "model.encoder.layers": 1, "model.width": 32, "model.encoder.width": 32},
    **{"data.image.size": 16, "data.batch_tokens": 512, "data.image.batch_size": 8},
}
TOP = 3
ANSWERING = [name for name, task in all_tasks().items() if task.target_kind != "nothing"]
"""The tasks that predict something for each row."""


def untrained_task(name: str, folder: Path) -> tuple[Task, Path]:
    """Return a task with a small model with its initial weights, and its data."""
    preset = all_tasks()[name].preset
    read = read_settings(load_config(preset))
    config = load_config(preset, [f"{key}={value}" for key, value in SMALL.items() if key in read])
    folder.mkdir()
    data = folder / WRITERS[preset](folder)
    task = task_of(config)
    task = task.bind(task.prepare(DataPaths(str(data)), lambda line: None).processor)
    task = task.bind(task.processor, build_model(task, torch.device("cpu")).eval())
    return task, data


def places(answer: Answer) -> list[tuple[Any, Any, Any]]:
    """Return text, probability and likeliest answers of each place."""
    if isinstance(answer.text, list):
        return [*zip(answer.text, answer.probability, answer.top, strict=True)]  # type: ignore[arg-type]
    return [(answer.text, answer.probability, answer.top)]


def check_answer(task: Task, answer: Answer) -> None:
    """Check that the likeliest answer comes first, with its probability."""
    for text, share, top in places(answer):
        assert top[0] == (text, share)
        assert 0 < share <= 1
        assert 1 <= len(top) <= TOP
        if not task.writes_answers:  # a beam search ranks by another length penalty
            assert [each[1] for each in top] == sorted((each[1] for each in top), reverse=True)
    assert (answer.log_probability is not None) == task.writes_answers


def clear_texts(answer: Answer) -> list[str]:
    """Return the texts of places where no other text is about as likely: in other batches the last bits of
    sums differ."""
    return [text for text, share, top in places(answer) if len(top) == 1 or share - top[1][1] > 1e-4]


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERING)
def test_rows_in_are_rows_out(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path / "cache")))
    task, data = untrained_task(name, tmp_path / "data")
    spoiled, middle, count = spoil_middle(data, tmp_path / "spoiled")
    whole = task.predict(str(data), TOP, lambda line: None, no_progress)
    messages: list[str] = []
    rows = task.predict(str(spoiled), TOP, messages.append, no_progress)
    assert len(rows) == len(whole) == count
    assert [row.answer is None for row in rows] == [index == middle for index in range(count)]
    assert rows[middle].reason
    assert messages == [f"skipped: {rows[middle].location}: {rows[middle].reason}"]
    for row, same in zip(rows, whole, strict=True):
        assert same.answer is not None
        check_answer(task, same.answer)
        assert row.columns == same.columns or row.answer is None
        if row.answer is not None:
            assert clear_texts(row.answer) == clear_texts(same.answer)
            assert row.answer.probability == pytest.approx(same.answer.probability, rel=1e-3)
    assert len({str(row.columns) for row in whole}) > count // 2, "the rows' own columns tell them apart"
