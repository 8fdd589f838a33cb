"""Whether a model has blocks that `training.activation_checkpointing` can compute again."""

from torch import nn

from foveal.config import TrainingConfig
from foveal.core.errors import UserError
from foveal.layers.blocks.stack import Stack


def check_activation_checkpointing(model: nn.Module, config: TrainingConfig) -> None:
    """Check that a model has a stack of blocks, if its training is to compute blocks again.

    Raises: UserError: it has none.
    """
    if config.activation_checkpointing and not has_blocks(model):
        raise UserError(
            "training.activation_checkpointing: this model has no stack of blocks to compute again: leave it "
            "out"
        )


def has_blocks(model: nn.Module) -> bool:
    """Return whether a model has a stack of blocks."""
    return any(isinstance(each, Stack) for each in model.modules())
