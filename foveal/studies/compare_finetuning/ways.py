"""The ways to fine-tune an encoder that are compared, each by the settings of its training."""

from collections.abc import Sequence
from typing import Any

from foveal.config import parse_overrides
from foveal.core.errors import UserError
from foveal.core.module_facts import norms_with_statistics
from foveal.studies.compare_finetuning.advice import Strategy
from foveal.tasks.config import from_tables
from foveal.tasks.session import Session
from foveal.training.layer_depth import layer_depths

LR_FACTOR = 0.1
"""The factor on a run's learning rate. Imported runs have a rate for fine-tuning, which stays as it is."""
MAX_WARMUP = 20
"""Steps of warm-up at most."""
RECIPE_SETTINGS = ("model.", "optimizer.", "schedule.", "data.image.", "data.augment.")
"""Settings of the run's recipe, which training from scratch takes from the preset instead."""


def check_encoder(base: Session) -> None:
    """Check that a run has an encoder of images with several layers.

    Raises: UserError: the run has none.
    """
    path = base.run.path
    if not base.task.trains_networks:
        raise UserError(f"{path}: a run of task {base.task.name}, and only runs on images can be compared")
    if max(layer_depths(base.model).values()) < 2:
        raise UserError(f"{path}: its encoder has only one layer, so there is nothing to compare")


def with_overrides(base: Session, overrides: Sequence[str]) -> Any:
    """Return the task of a run with other settings.

    Raises: ConfigError: a setting does not fit the task.
    """
    return type(base.task)(from_tables(base.config.model_dump(), parse_overrides(overrides)))


def settings_of_ways(base: Session, overrides: Sequence[str]) -> dict[Strategy, list[str]]:
    """Return the settings of each way; the user's stand last, and so take precedence."""
    config = base.config
    imported = base.run.manifest["data"]["data"] is None
    rate = config.optimizer.lr * (1 if imported else LR_FACTOR)
    warmup = min(MAX_WARMUP, config.schedule.warmup_steps)
    common = [f"optimizer.lr={rate:g}", f"schedule.warmup_steps={warmup}"]
    freeze = "norms" if norms_with_statistics(base.model) else "none"
    own: dict[Strategy, list[str]] = {
        "head": ["training.freeze=encoder"],
        "last-block": ["training.freeze=below-last-block"],
        "all": [f"training.freeze={freeze}", "optimizer.layer_decay=0.9"],
    }
    settings = {way: [*first, *common, *overrides] for way, first in own.items()}
    return settings | {"scratch": [text for text in overrides if not text.startswith(RECIPE_SETTINGS)]}
