"""First weights that are computed from training data."""

import numpy as np
from torch import nn

from foveal.config import Config
from foveal.core.runtime import derived_seed, seed_everything
from foveal.data.ask import AskExamples
from foveal.data.images import Pictures
from foveal.data.order import permuted
from foveal.data.picture_order import centres, standardised
from foveal.data.prepared import Prepared
from foveal.encoders.image import ImageEncoder
from foveal.encoders.joint import JointEncoder
from foveal.layers.fitted import Fitted

IMAGES, PIXELS = 4096, 1 << 24
"""As many images at most, and as many pixels: 200 MB of three channels."""


def fit_first(config: Config, model: nn.Module, data: Prepared[object, object]) -> bool:
    """Fit a model, or the first block of its encoder of images, on some of the training part, if it begins
    from images.

    True if it does. Which images is a function of the seed and their number.
    """
    encoder = getattr(model, "encoder", None)
    encoder = encoder.parts["source"] if isinstance(encoder, JointEncoder) else encoder
    first = next(iter(encoder.blocks), None) if isinstance(encoder, ImageEncoder) else model
    if not isinstance(first, Fitted):
        return False
    pictures, seed = getattr(data.train, "examples", None), config.training.seed
    pictures = pictures.pictures if isinstance(pictures, AskExamples) else pictures
    assert isinstance(pictures, Pictures)
    many = min(len(pictures), IMAGES, PIXELS // config.data.image.size**2)
    rows = permuted(np.arange(many), len(pictures), derived_seed(seed, "fit"))
    seed_everything(seed, "fit")
    images = standardised(centres(pictures, rows), pictures)
    first.fit(images.to(next(model.parameters()).device))
    return True
