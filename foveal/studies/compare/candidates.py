"""The models of a comparison before their training: on the same data, with the same batches."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from foveal.config import Config, ConfigError
from foveal.core.errors import UserError
from foveal.core.log import Log
from foveal.core.shapes_only import shapes_only
from foveal.data.core.prepared_data import PreparedData
from foveal.data.open import DataPaths
from foveal.tasks.base import Task
from foveal.tasks.config import from_tables
from foveal.tasks.registry import task_of

MISFITS = (UserError, ConfigError, ValueError)
"""Errors of settings that do not fit each other."""


@dataclass(frozen=True)
class Candidate:
    """A model to compare, by its settings."""

    name: str
    """The name in tables and of its runs."""
    preset: str
    """What its settings come from: a preset, a network or a TOML file."""
    config: Config


@dataclass(frozen=True)
class EqualTerms:
    """Models with equal settings of data and task, and the data prepared with these settings."""

    candidates: tuple[Candidate, ...]
    origin: str
    """The name of the model whose settings of data and task all have."""
    prepared: PreparedData[Any, Any]


def unique_names(presets: Sequence[str]) -> list[str]:
    """Return a name for each model: that of its preset or TOML file, with a number if it occurs again."""
    stems = [Path(preset).stem if preset.endswith(".toml") else preset for preset in presets]
    counts = [stems[:place].count(stem) for place, stem in enumerate(stems)]
    names = [f"{stem}-{count + 1}" if count else stem for stem, count in zip(stems, counts, strict=True)]
    if len({*names}) < len(names):
        raise UserError(f"--models: two models would be called {max(names, key=names.count)}; rename a file")
    return names


def on_equal_terms(candidates: Sequence[Candidate], paths: DataPaths, log: Log) -> EqualTerms:
    """Give all models the settings of data and task of the first model whose settings fit all.

    Raises: UserError: the models have different tasks, the data can't be read or have no held-out rows, or
        no model's settings fit all others.
    """
    _check_same_task(candidates)
    for each in candidates:
        if not each.config.training.final_test:
            raise UserError(f"{each.name}: training.final_test=false leaves no loss to compare: leave it out")
    refused: UserError | None = None
    for origin in candidates:
        try:
            shared = tuple(_with_settings_of(origin.config, each) for each in candidates)
        except UserError as error:
            refused = refused or error
            continue
        prepared = task_of(origin.config).prepare(paths, log)
        if prepared.held_out is None:
            raise UserError(
                f"{paths.data}: no held-out rows to compare on: give data.test_fraction=0.2, or --test"
            )
        try:
            for each in shared:
                _check_fits(each, prepared, paths)
        except UserError as error:
            refused = refused or error
        else:
            return EqualTerms(shared, origin.name, prepared)
    assert refused is not None
    raise refused


def shape_of(config: Config, processor: Any) -> Task:
    """Return a task bound to a model that has shapes, but no numbers.

    Raises: UserError or ValueError: the settings make no model.
    """
    task = task_of(config).bind(processor)
    with shapes_only():
        return task.bind(processor, task.new_model())


def _check_same_task(candidates: Sequence[Candidate]) -> None:
    first = candidates[0]
    for each in candidates[1:]:
        if each.config.task.name != first.config.task.name:
            raise UserError(
                f"--models: {each.name} is a model for task {each.config.task.name}, and {first.name} for "
                f"{first.config.task.name}: compare models of one task"
            )


def _with_settings_of(origin: Config, candidate: Candidate) -> Candidate:
    """Return a model with the settings of another that decide what is read, and in which batches.

    Raises: UserError: the settings do not fit the model.
    """
    tables, theirs = candidate.config.model_dump(), origin.model_dump()
    tables |= {section: theirs[section] for section in ("data", "task")}
    tables["training"]["grad_accumulation"] = origin.training.grad_accumulation
    try:
        return replace(candidate, config=from_tables(tables))
    except ConfigError as error:
        raise UserError(f"{candidate.name}: {error}") from None


def _check_fits(candidate: Candidate, prepared: PreparedData[Any, Any], paths: DataPaths) -> None:
    """Check that a model can be trained and evaluated on the data.

    Raises: UserError: it can't.
    """
    try:
        task = shape_of(candidate.config, prepared.processor)
        task.objective()
    except MISFITS as error:
        raise UserError(f"{candidate.name}: {error}") from None
    for split in ("train", "valid", "test"):
        rows = getattr(prepared, split)
        if rows is None:
            continue
        try:
            task.train_batches(rows) if split == "train" else task.eval_batches(rows)
        except UserError as error:
            raise UserError(f"{getattr(paths, split, None) or paths.data}: {error}") from None
