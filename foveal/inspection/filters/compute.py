"""The weights of a first layer, which multiply pixels (Krizhevsky et al. 2012, figure 3).

Only these weights can be shown as images; deeper layers multiply the outputs of other layers.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.encoders.image import ImageEncoder
from foveal.encoders.patches import PatchEncoder

CAVEAT = "weights for standardized pixels, scaled to be visible; only a first layer's weights are like images"
IDLE_NORM = 0.01
"""A filter whose norm is below this share of the largest norm responds to nothing: the filter is idle."""


@dataclass(frozen=True)
class Filters:
    """The filters of a layer: unit n computes `sum weights[n] * x + b_n`.

    x is the pixels (channels, frames, rows, columns) in a window of the image, or in the whole image.
    """

    layer: str
    weights: Float[np.ndarray, "N C T H W"]

    @property
    def norms(self) -> Float[np.ndarray, " N"]:
        """The Euclidean norm of each filter."""
        squares = (self.weights.astype(np.float64) ** 2).sum((1, 2, 3, 4))
        norms: Float[np.ndarray, " N"] = np.sqrt(squares)
        return norms

    @property
    def idle(self) -> int:
        """The number of idle filters."""
        return int((self.norms < IDLE_NORM * self.norms.max()).sum())


def first_layer_filters(model: nn.Module, channels: int, size: int) -> Filters | None:
    """Return the filters of the first layer that reads the pixels of images of `size` by `size`.

    Return None if there is no such layer, as after features that are not learned.
    """
    without_blocks = False
    for name, module in model.named_modules():
        if isinstance(module, PatchEncoder):
            shape = (-1, channels, 1, module.patch, module.patch)
            return _make_filters(f"{name}.projection", module.projection.weight.view(shape))
        if isinstance(module, nn.Conv2d) and module.in_channels == channels:
            return _make_filters(name, module.weight[:, :, None])
        if isinstance(module, nn.Conv3d) and module.in_channels == channels:
            return _make_filters(name, module.weight)
        without_blocks = without_blocks or (isinstance(module, ImageEncoder) and not module.blocks)
        if without_blocks and isinstance(module, nn.Linear) and module.in_features == size * size * channels:
            # `heads.flatten_classification` orders pixels in this way.
            pixels = module.weight.view(-1, 1, size, size, channels)
            return _make_filters(name, torch.movedim(pixels, -1, 1))
    return None


def _make_filters(layer: str, weights: Tensor) -> Filters:
    return Filters(layer, weights.detach().float().cpu().numpy())
