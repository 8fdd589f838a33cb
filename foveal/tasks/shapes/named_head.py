"""The head that a config names in place of the one of the task or of the network."""

from torch import nn

from foveal.config import ModelConfig
from foveal.heads.registry import HEADS
from foveal.plugins.part_settings import part_settings


def names_head(config: ModelConfig) -> bool:
    """Return whether a config names a head."""
    return config.head.kind != "default"


def make_named_head(config: ModelConfig, width: int, classes: int) -> nn.Module:
    """Return the head that a config names, for vectors of `width`."""
    (settings,) = part_settings(config.head, "model.head").values()
    return HEADS[config.head.kind].make(width, classes, dict(settings))


def check_named_head(config: ModelConfig, task: str, target: str) -> None:
    """Check that the head that a config names predicts the target of a task.

    Raises: ValueError: it does not; the error names those that do.
    """
    if names_head(config) and HEADS[config.head.kind].target != target:
        fitting = [name for name, spec in HEADS.items() if spec.target == target]
        raise ValueError(
            f"model.head.kind={config.head.kind} does not predict the {target} of task.name={task}: set it "
            f"to {' or '.join(['default', *fitting])}"
        )
