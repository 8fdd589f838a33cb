"""First weights that are computed from training data."""

import numpy as np
from torch import nn

from foveal.config import Config
from foveal.core.runtime import derived_seed, seed_everything
from foveal.data.core.prepared_data import Prepared
from foveal.data.images.image_batches import centres, standardised
from foveal.data.images.image_examples import Pictures
from foveal.data.text.token_batches import permuted
from foveal.encoders.image import ImageEncoder
from foveal.encoders.joint import JointEncoder
from foveal.layers.data_dependent_init import Fitted
from foveal.objectives.selective_model import Proxied
from foveal.tasks.vqa.vqa_examples import AskExamples

IMAGES, PIXELS = 4096, 1 << 24
"""As many images at most, and as many pixels: 200 MB of three channels."""


def fit_first(config: Config, model: nn.Module, data: Prepared[object, object], taken: bool) -> bool:
    """Fit what begins from images on some of the training part: a model, or the first block of an encoder.

    True if something does. Where the encoder is `taken` from a run, a proxy beside it is fitted alone. Which
    images is a function of the seed and their number.
    """
    models = [] if taken else [model]
    models += [model.proxy] if isinstance(model, Proxied) else []
    fitted = [first for first in map(_first, models) if isinstance(first, Fitted)]
    if not fitted:
        return False
    pictures, seed = getattr(data.train, "examples", None), config.training.seed
    pictures = pictures.pictures if isinstance(pictures, AskExamples) else pictures
    assert isinstance(pictures, Pictures)
    many = min(len(pictures), IMAGES, PIXELS // config.data.image.size**2)
    rows = permuted(np.arange(many), len(pictures), derived_seed(seed, "fit"))
    seed_everything(seed, "fit")
    images = standardised(centres(pictures, rows), pictures)
    for first in fitted:
        first.fit(images.to(next(model.parameters()).device))
    return True


def _first(model: nn.Module) -> nn.Module:
    """The first block of its encoder of images, or the model."""
    encoder = getattr(model, "encoder", None)
    encoder = encoder.parts["source"] if isinstance(encoder, JointEncoder) else encoder
    return encoder.blocks[0] if isinstance(encoder, ImageEncoder) and len(encoder.blocks) else model
