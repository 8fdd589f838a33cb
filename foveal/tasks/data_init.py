"""First weights that are computed from training data."""

import numpy as np
from torch import nn

from foveal.config import Config
from foveal.core.module_facts import lendable_encoder, modules_beside
from foveal.core.runtime import derived_seed, seed_everything
from foveal.data.core.prepared_data import PreparedData
from foveal.data.images.image_batches import center_crops, standardize_images
from foveal.data.images.image_examples import ImageExamples
from foveal.data.text.token_batches import permute_indices
from foveal.encoders.image import ImageEncoder
from foveal.layers.data_dependent_init import DataDependentInit
from foveal.tasks.vqa.vqa_examples import VQAExamples

MAX_IMAGES, MAX_PIXELS = 4096, 1 << 24
"""As many images at most, and as many pixels: 200 MB of three channels."""


def data_dependent_init(
    config: Config, model: nn.Module, data: PreparedData[object, object], reused: bool
) -> bool:
    """Fit what begins from images on some of the training part: a model, or the first block of an encoder.

    True if something does. Where the encoder is `reused` from a run, only models beside it are fitted. Which
    images is a function of the seed and their number.
    """
    models = [] if reused else [model]
    models += modules_beside(model)
    fitted = [first for first in map(_first_block, models) if isinstance(first, DataDependentInit)]
    if not fitted:
        return False
    pictures, seed = getattr(data.train, "examples", None), config.training.seed
    pictures = pictures.images if isinstance(pictures, VQAExamples) else pictures
    assert isinstance(pictures, ImageExamples)
    many = min(len(pictures), MAX_IMAGES, MAX_PIXELS // config.data.image.size**2)
    rows = permute_indices(np.arange(many), len(pictures), derived_seed(seed, "fit"))
    seed_everything(seed, "fit")
    images = standardize_images(center_crops(pictures, rows), pictures)
    for first in fitted:
        first.fit(images.to(next(model.parameters()).device))
    return True


def _first_block(model: nn.Module) -> nn.Module:
    """The first block of its encoder of images, or the model."""
    encoder = lendable_encoder(model)
    return encoder.blocks[0] if isinstance(encoder, ImageEncoder) and len(encoder.blocks) else model
