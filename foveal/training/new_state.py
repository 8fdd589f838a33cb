"""The state of a training before its first step."""

from torch import nn

from foveal.distributed.placement import Placement
from foveal.distributed.world import World
from foveal.store.metrics_log import JsonlLog
from foveal.store.run import RunFolder
from foveal.training.averaging import make_average
from foveal.training.followers import NoLog
from foveal.training.loss_scaling import make_loss_scaling
from foveal.training.optim import Optimizer
from foveal.training.protocols import Batches, PlacedBatches
from foveal.training.rounding import rounding_of
from foveal.training.snapshot import TrainingState


def new_state(
    folder: RunFolder, model: nn.Module, batches: Batches, world: World, placement: Placement
) -> TrainingState:
    """Return the state of a run before its first step. Only the main rank of the `world` opens the logs."""
    config = folder.config.training
    open_log = JsonlLog if world.is_main else NoLog
    return TrainingState(
        optimizer=Optimizer(model, folder.config.optimizer, placement),
        average=make_average(model, config, placement),
        carries=[None] * config.grad_accumulation,
        metrics=open_log(folder.metrics),
        samples=open_log(folder.samples),
        statistics=open_log(folder.statistics) if folder.statistics.exists() else None,
        batches=batches if isinstance(batches, PlacedBatches) else None,
        scaling=make_loss_scaling(config.precision),
        rounding=rounding_of(folder, next(model.parameters()).device, world),
    )
