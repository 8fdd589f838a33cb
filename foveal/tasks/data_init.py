"""Initial weights that are computed from training data: of an encoder's first block, and of a linear head."""

from foveal.core.module_facts import auxiliary_models, input_block
from foveal.core.runtime import seed_everything
from foveal.data.core.prepared_data import PreparedData
from foveal.layers.data_dependent_init import DataDependentInit
from foveal.tasks.base import Task


def data_dependent_init(task: Task, data: PreparedData[object, object], reused: bool) -> bool:
    """Fit the modules with data-dependent weights to sources of the training split.

    Return whether there are such modules. If the encoder is `reused` from a run, only auxiliary models are
    fitted. The chosen sources are a function of the seed and the number of sources.
    """
    config, model = task.config, task.model
    models = [] if reused else [model]
    models += auxiliary_models(model)
    fitted = [first for first in map(input_block, models) if isinstance(first, DataDependentInit)]
    if not fitted:
        return False
    inputs = task.fit_inputs(data.train)
    seed_everything(config.training.seed, "fit")
    device = next(model.parameters()).device
    for first in fitted:
        first.fit(*(values.to(device) for values in inputs))
    return True
