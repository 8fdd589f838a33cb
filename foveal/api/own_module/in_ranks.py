"""What several processes need to train a user's module together."""

from torch import nn

from foveal.config import Config, TrainingConfig
from foveal.core.errors import UserError
from foveal.tasks.activation_checkpointing import check_activation_checkpointing
from foveal.training.agreement import Agreement
from foveal.training.module.batch import content_hash, leaves
from foveal.training.protocols import Batches
from foveal.training.step import OTHER_BATCHES


def check_module(module: nn.Module, config: TrainingConfig, processes: int) -> None:
    """Check that several processes can compute parts of a batch, and that the module has what the settings
    need.

    Raises: UserError: a layer needs the whole batch, or there are no blocks to compute again.
    """
    check_activation_checkpointing(module, config)
    if processes == 1:
        return
    for path, layer in module.named_modules():
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            name = path or "the module"
            raise UserError(
                f"{name}: {type(layer).__name__} reads the whole batch, of which each process has a part: "
                "use another norm, such as GroupNorm, or train in one process"
            )


def with_slots(config: Config, slots: int) -> Config:
    """Return the settings with batches of so many slots."""
    training = config.training.model_copy(update={"slots": slots})
    return config.model_copy(update={"training": training})


def check_alike(module: nn.Module, batches: Batches, together: Agreement) -> None:
    """Check that all processes have the same module and the same batches.

    Raises: UserError: this process has others than the first.
    """
    shapes = [(name, list(weight.shape)) for name, weight in module.named_parameters()]
    together.check_same(shapes, "module: the processes have different modules: build the same in each")
    together.check_same(content_hash(leaves(batches.batch(0, 0).value)), OTHER_BATCHES)
