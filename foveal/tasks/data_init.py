"""Initial weights that are computed from training data."""

import numpy as np

from foveal.core.module_facts import auxiliary_models, input_block
from foveal.core.runtime import derived_seed, seed_everything
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.shuffle import permute_indices
from foveal.data.images.image_batches import center_crops, standardize_images
from foveal.data.images.image_examples import ImageExamples
from foveal.layers.data_dependent_init import DataDependentInit
from foveal.tasks.base import Task

MAX_IMAGES, MAX_PIXELS = 4096, 1 << 24
"""Largest numbers of images and of pixels: 200 MB with three channels."""


def data_dependent_init(task: Task, data: PreparedData[object, object], reused: bool) -> bool:
    """Fit the modules with data-dependent weights to images of the training split.

    Return whether there are such modules. If the encoder is `reused` from a run, only auxiliary models are
    fitted. The chosen images are a function of the seed and the number of images.
    """
    config, model = task.config, task.model
    models = [] if reused else [model]
    models += auxiliary_models(model)
    fitted = [first for first in map(input_block, models) if isinstance(first, DataDependentInit)]
    if not fitted:
        return False
    images, seed = task.fit_images(data.train), config.training.seed
    assert isinstance(images, ImageExamples)
    count = min(len(images), MAX_IMAGES, MAX_PIXELS // config.data.image.size**2)
    rows = permute_indices(np.arange(count), len(images), derived_seed(seed, "fit"))
    seed_everything(seed, "fit")
    pixels = standardize_images(center_crops(images, rows), images)
    for first in fitted:
        first.fit(pixels.to(next(model.parameters()).device))
    return True
