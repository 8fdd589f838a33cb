"""The names of all optimizers."""

from typing import get_args

from foveal.config import OptimizerConfig

OPTIMIZER_NAMES: tuple[str, ...] = get_args(OptimizerConfig.model_fields["name"].annotation)
