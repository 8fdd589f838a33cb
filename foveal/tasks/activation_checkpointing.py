"""Whether a model has blocks that `training.activation_checkpointing` can compute again."""

from torch import nn

from foveal.config import TrainingConfig
from foveal.core.errors import UserError
from foveal.layers.blocks.stack import Stack


def check_activation_checkpointing(model: nn.Module, config: TrainingConfig) -> None:
    """Check that a model has a stack of blocks, if its training is to compute blocks again.

    Raises: UserError: it has none.
    """
    if config.activation_checkpointing and not any(isinstance(each, Stack) for each in model.modules()):
        raise UserError(
            "training.activation_checkpointing: this model has no stack of blocks to compute again: leave it "
            "out"
        )
