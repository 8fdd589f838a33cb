"""A comparison as the user asks for it: its folder, its models and their trainings."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from foveal.api.training.choose import ChosenTraining, choose
from foveal.api.training.options import TrainingOptions
from foveal.config import ConfigError
from foveal.core.errors import UserError
from foveal.core.terminal_text import counted
from foveal.plugins.references import REFERENCE
from foveal.store.cache import shorten_unpacked_paths
from foveal.store.run import check_outside_data, check_run_path
from foveal.store.run_paths import default_run_path
from foveal.studies.compare.candidates import Candidate, on_equal_terms, unique_names
from foveal.studies.compare.plan import plan_models
from foveal.studies.compare.stored_models import (
    PlannedModels,
    model_file,
    read_models,
    training_path,
    write_models,
)
from foveal.studies.compare.terms import Terms
from foveal.studies.trials.folder import open_study
from foveal.studies.trials.process import options_of_plugins
from foveal.studies.trials.trainings import Training
from foveal.ui.activity import Activity
from foveal.ui.console import log, print_facts

STUDY = "compare"


@dataclass(frozen=True)
class ComparisonRequest:
    """A comparison as the user asks for it."""

    data: str
    overrides: tuple[str, ...]
    """The settings of all models."""
    options: TrainingOptions
    models: tuple[str, ...]
    """Presets, networks or paths of TOML files."""
    terms: Terms

    def __post_init__(self) -> None:
        """Check the number of models.

        Raises: UserError: there are too few.
        """
        if len(self.models) < 2:
            raise UserError(
                f"--models: {counted(len(self.models), 'model')}; name two or more, with commas between"
            )

    @cached_property
    def folder(self) -> Path:
        """The folder of the study."""
        return self.options.run or default_run_path(self.data, STUDY)

    @property
    def _held_out(self) -> tuple[str | None, str | None]:
        return self.options.valid, self.options.test

    @property
    def _settings(self) -> dict[str, Any]:
        """The settings with which alone a study goes on. The number of seeds may change."""
        valid, test = self._held_out
        return {
            "data": self.data,
            "overrides": [*self.overrides, *self.options.overrides()],
            "task": self.options.task,
            "valid": valid,
            "test": test,
            "models": [*self.models],
            "match": self.terms.match,
            "parameters": self.terms.parameters,
            "budget": self.terms.budget,
        }

    def plan(self) -> PlannedModels:
        """Return the models of the study, which is created if there is none in its folder.

        Raises: UserError or ConfigError: the data can't be read, a setting does not fit, a model can't be
            made equal to the others, or the folder belongs to something else.
        """
        study = self.folder, STUDY, self._settings, self.data, *self._held_out
        if not self.folder.exists():
            check_run_path(self.folder)
            check_outside_data(self.folder, self.data, *self._held_out)
        elif open_study(*study) and (known := read_models(self.folder)):
            return known
        names = unique_names(self.models)
        chosen = [self._choose(model) for model in self.models]
        candidates = [
            Candidate(name, preset, each.choice.config)
            for name, preset, each in zip(names, self.models, chosen, strict=True)
        ]
        with Activity(f"reading {shorten_unpacked_paths(self.data)}"):
            equal = on_equal_terms(candidates, chosen[0].paths, log)
        planned, configs = plan_models(equal, self.terms)
        open_study(*study)
        write_models(self.folder, planned, configs)
        print_facts([("equal", self.terms.words(names[0])), ("runs", str(self.folder))])
        return planned

    def _choose(self, model: str) -> ChosenTraining:
        """Return what is decided about the training of a model.

        Raises: UserError: DATA can't be opened, or a setting does not fit the model.
        """
        try:
            return choose(self.data, self.overrides, replace(self.options, model=model))
        except ConfigError as error:
            raise UserError(f"{model}: {error}") from None

    def trainings(self, planned: PlannedModels) -> list[Training]:
        """Return the trainings of all models and seeds."""
        return [
            Training(
                model.name,
                seed,
                training_path(self.folder, model.name, seed),
                self._arguments(model.name, seed),
            )
            for model in planned.models
            for seed in range(self.terms.seeds)
        ]

    def _arguments(self, name: str, seed: int) -> tuple[str, ...]:
        """Return the arguments of `foveal train` for a run. All else stands in the file of its model."""
        valid, test = self._held_out
        own = TrainingOptions(
            model=str(model_file(self.folder, name)),
            valid=valid,
            test=test,
            budget=self.terms.budget,
            seed=seed,
            device=self.options.device,
        )
        return (self.data, *filter(_is_for_the_process, self.overrides), *own.words())

    def command(self) -> str:
        """Return the command that goes on with the study."""
        terms = self.terms
        values = {
            "models": ",".join(self.models),
            "match": terms.match,
            "parameters": terms.parameters,
            "budget": terms.budget,
            "seeds": terms.seeds,
        }
        given = ((f"--{name}", str(value)) for name, value in values.items() if value is not None)
        words = [word for pair in given for word in pair]
        words += replace(self.options, run=self.folder).words()
        return shlex.join(["foveal", STUDY, self.data, *self.overrides, *words, *options_of_plugins()])


def model_names(models: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of models: a list, or a text with commas between them."""
    names = models.split(",") if isinstance(models, str) else models
    return tuple(name.strip() for name in names if name.strip())


def _is_for_the_process(override: str) -> bool:
    """Return whether a setting is needed before the file of the model is read: to open the data, or since it
    loads a file with code."""
    return override.startswith("data.encoding=") or bool(REFERENCE.search(override))
