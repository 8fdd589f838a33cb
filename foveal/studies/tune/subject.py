"""What is tuned: trainings by `foveal train` with given arguments."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from foveal.config import Config
from foveal.studies.trials.process import options_of_plugins
from foveal.studies.tune.checks import EVALUATIONS
from foveal.studies.tune.space import value_text

TRIAL_SETTINGS = {"training.final_test": "false", "training.statistics": "false"}
"""Settings of each trial: the test split is for the model that is chosen at the end."""


@dataclass(frozen=True)
class Subject:
    """Trainings that differ in settings alone."""

    data: str
    options: tuple[str, ...]
    """The options of `foveal train` beside settings, such as `--model lstm`."""
    given: dict[str, str]
    """The settings that the user gave."""
    config: Config
    preset: str
    preset_values: dict[str, Any]
    """What the preset has for the given settings of the training and its regularization."""
    full_budget: str
    """The budget of a whole training."""

    def arguments(self, settings: Mapping[str, str], steps: int) -> list[str]:
        """Return the arguments of `foveal train` for a trial."""
        length = {
            "training.budget": f"{steps}steps",
            "training.evaluate_every": str(-(-steps // EVALUATIONS)),
        }
        return self._arguments({**self.given, **settings, **TRIAL_SETTINGS, **length})

    def command(self, settings: Mapping[str, str]) -> list[str]:
        """Return the command of a whole training."""
        merged = {**self.given, **settings, "training.budget": self.full_budget}
        return ["foveal", "train", *self._arguments(merged), *options_of_plugins()]

    def _arguments(self, settings: Mapping[str, str]) -> list[str]:
        return [self.data, *self.options, *(f"{key}={value}" for key, value in settings.items())]

    @property
    def preset_settings(self) -> dict[str, str]:
        """The preset's values in place of those that were given."""
        return {key: value_text(value) for key, value in self.preset_values.items()}
