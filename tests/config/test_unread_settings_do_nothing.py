"""The proof: an unread setting changes nothing of a training, and a read one is looked at.

Every task is trained for two steps on small data and evaluated, with its own preset: once as it is, with all
accesses to settings recorded, and once with another value of every setting that is not read.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest
import soundfile
import torch
from torch import Tensor

from benchmarks.goldens import MAKERS, write_short_text
from benchmarks.kill import own_cache
from foveal.config import Config
from foveal.config.old_names import PRESETS
from foveal.config.values import StrictModel
from foveal.core.progress import no_progress
from foveal.core.state import State
from foveal.data.open import DataPaths
from foveal.layers.mixers.registry import mixer_specs
from foveal.tasks.base import TaskSettings
from foveal.tasks.config import load_config
from foveal.tasks.read_settings import config_sections, read_settings, unread_settings
from foveal.tasks.registry import all_tasks, task_of
from foveal.tasks.session import build_model
from foveal.training.evaluate import evaluate
from foveal.training.optim import Optimizer
from foveal.training.plan import lr_at, make_plan
from foveal.training.step import train_step

CPU = torch.device("cpu")
STEPS = 2
SMALL = {
    "model.layers": 1,
    "model.encoder.layers": 1,
    "model.width": 32,
    "model.encoder.width": 32,
    "data.batch_tokens": 512,
    "data.image.size": 16,
    "data.image.batch_size": 8,
    "data.valid_fraction": 0.1,
    "data.test_fraction": 0.1,
    "task.batching": "streams",
}
"""Settings that make a training short, where they are read."""
BY_OTHERS = {
    "task.name": "it chooses the task",
    "model.encoder.kind": "a task with one kind of encoder looks at it when the config is checked",
    "task.metrics": "read by the report after the training",
    "data.label": "read where labels stand in a table",
    "model.encoder.bidirectional": "attention sees both directions in any case",
    "task.fusion.bidirectional": "likewise",
    "data.text": "the column of texts to tag, which predictions read",
    "data.history": "read where rows have the column",
    "data.max_length": "the length of a walk is that of its path",
}
"""Settings that are read, but not in such a training: why not."""


def write_series_with_texts(folder: Path) -> str:
    """Write series that rise or fall, each with a text that says so."""
    chance = np.random.default_rng(0)
    rows = [
        {
            "values": (np.linspace(0, (-1) ** row, 12)[:, None] + chance.normal(0, 0.1, (12, 2))).tolist(),
            "text": "it falls" if row % 2 else "it rises",
        }
        for row in range(40)
    ]
    (folder / "series.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return "series.jsonl"


def write_recordings_with_labels(folder: Path) -> str:
    """Write noise with a label for each frame of 25 ms, which are 10 ms apart."""
    chance = np.random.default_rng(0)
    for number in range(40):
        soundfile.write(folder / f"{number}.wav", chance.normal(0, 0.1, 1600), 8000)
    labels = " ".join("ab"[frame % 2] for frame in range(1 + (1600 - 200) // 80))
    rows = [json.dumps({"file_name": f"{number}.wav", "labels": labels}) for number in range(40)]
    (folder / "metadata.jsonl").write_text("\n".join(rows))
    return ""


WRITERS: dict[str, Callable[[Path], str]] = {
    **{PRESETS.get(name, name): write for write, names in MAKERS.items() for name in names.split()},
    **dict.fromkeys(("bidirectional-lm", "permutation-lm"), write_short_text),
    "series-captioning": write_series_with_texts,
    "audio-tagging": write_recordings_with_labels,
}
"""What writes data for the preset of a task."""


def small_config(preset: str) -> Config:
    read = read_settings(load_config(preset))
    return load_config(preset, [f"{key}={value}" for key, value in SMALL.items() if key in read])


def train(config: Config, data: Path) -> tuple[dict[str, Tensor], dict[str, float]]:
    """Return the weights after two steps, and what an evaluation finds."""
    task = task_of(config)
    prepared = task.prepare(DataPaths(str(data)), lambda line: None)
    task = task.bind(prepared.processor)
    task = task.bind(prepared.processor, build_model(task, CPU))
    task.fit_head(prepared.train, no_progress)
    objective, batches = task.objective(), task.train_batches(prepared.train)
    optimizer, carries = Optimizer(task.model, config.optimizer), list[State]([None])
    plan = make_plan(STEPS, config.schedule)
    for step in range(STEPS):
        _, carries = train_step(
            *(task.model, objective, optimizer, [batches.batch(0, step % batches.per_epoch)], carries),
            lr=lr_at(step, plan, config.schedule, config.optimizer.lr),
            seed=(config.training.seed, step),
        )
    found = evaluate(task.model, objective, task.eval_batches(prepared.held_out))
    return task.model.state_dict(), found


@contextmanager
def recorded_accesses(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """Record the dotted keys of all settings that are looked at, but for those of mixers."""
    keys: set[str] = set()
    paths: dict[int, tuple[StrictModel, str]] = {}
    plain = StrictModel.__getattribute__

    def get(self: StrictModel, name: str) -> Any:
        value = plain(self, name)
        if name in type(self).model_fields:
            root = "task." if isinstance(self, TaskSettings) else ""
            known = isinstance(self, Config | TaskSettings)
            if known or id(self) in paths:
                key = f"{root}{name}" if known else f"{paths[id(self)][1]}.{name}"
                keys.add(key)
                if isinstance(value, StrictModel):
                    paths[id(value)] = (value, key)  # the object is kept, so that no other has its id
        return value

    with monkeypatch.context() as patch:
        patch.setattr(StrictModel, "__getattribute__", get)
        yield keys


def other_value(section: StrictModel, name: str) -> Any:
    """Return another value of a setting than its own."""
    value, annotation = getattr(section, name), type(section).model_fields[name].annotation
    if get_origin(annotation) is Literal:
        return next(choice for choice in get_args(annotation) if choice != value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return {"mixers": "gru", "network": "lenet-5"}.get(name, "another")
    return value / 2 + 0.1 if isinstance(value, float) else value + 1


def with_value(config: Any, path: list[str], value: Any) -> Any:
    """Return a config, or a section, with another value of a setting; nothing is checked."""
    name, *rest = path
    if isinstance(config, dict):  # the section of a task, as it was written
        return config | {name: with_value(config.get(name, {}), rest, value) if rest else value}
    inner = with_value(getattr(config, name), rest, value) if rest else value
    return config.model_copy(update={name: inner})


def with_unread_changed(config: Config) -> Config:
    """Return the config with another value of every setting that is not read."""
    sections, mixers = config_sections(config), {spec.section for spec in mixer_specs().values()}
    for key in unread_settings(config):
        section, _, name = key.rpartition(".")
        if section.rpartition(".")[2] not in mixers and section != "task":
            config = with_value(config, key.split("."), other_value(sections[section], name))
    return config


@pytest.mark.parametrize("name", all_tasks())
def test_unread_settings_do_nothing_and_read_ones_are_looked_at(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preset = all_tasks()[name].preset
    data, config = tmp_path / WRITERS[preset](tmp_path), small_config(preset)
    monkeypatch.setenv("FOVEAL_CACHE", str(own_cache(tmp_path / "cache")))
    with recorded_accesses(monkeypatch) as accessed:
        weights, found = train(config, data)
    changed = with_unread_changed(config)
    assert changed != config
    other_weights, other_found = train(changed, data)
    assert all(torch.equal(weights[key], other_weights[key]) for key in weights | other_weights)
    assert found == pytest.approx(other_found, nan_ok=True, rel=0, abs=0)
    checked = {key for key in read_settings(config) if key.startswith(("data.", "model.", "task."))}
    sections = {spec.section for spec in mixer_specs().values()}
    own = {key for key in checked if key.split(".")[-2] not in sections}
    assert own - accessed - BY_OTHERS.keys() == set()
