"""The weights that meet pixels: what the units of a first layer answer to (Krizhevsky et al. 2012, figure 3).

They alone can be looked at as pictures; deeper weights meet what a layer has made of one.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.encoders.image import ImageEncoder
from foveal.encoders.patches import PatchEncoder

CAVEAT = "weights of standardised pixels, scaled to be seen; only a first layer's are in the space of pixels"
IDLE_NORM = 0.01
"""A filter whose norm is below this share of the largest answers to nothing."""


@dataclass(frozen=True)
class Filters:
    """Unit n of `layer` gives `sum weights[n] * x + b_n`, x the pixels that it sees (channels, frames, rows,
    columns): a window of the image, or all of it."""

    layer: str
    weights: Float[np.ndarray, "N C T H W"]

    @property
    def norms(self) -> Float[np.ndarray, " N"]:
        found: Float[np.ndarray, " N"] = np.sqrt((self.weights.astype(np.float64) ** 2).sum((1, 2, 3, 4)))
        return found

    @property
    def idle(self) -> int:
        return int((self.norms < IDLE_NORM * self.norms.max()).sum())


def first_layer_filters(model: nn.Module, channels: int, size: int) -> Filters | None:
    """Of the first layer that meets pixels, of images of `size` by `size`; None where there is none, as
    behind features that are not learned."""
    bare = False
    for name, part in model.named_modules():
        if isinstance(part, PatchEncoder):
            shape = (-1, channels, 1, part.patch, part.patch)
            return _make_filters(f"{name}.projection", part.projection.weight.view(shape))
        if isinstance(part, nn.Conv2d) and part.in_channels == channels:
            return _make_filters(name, part.weight[:, :, None])
        if isinstance(part, nn.Conv3d) and part.in_channels == channels:
            return _make_filters(name, part.weight)
        bare = bare or (isinstance(part, ImageEncoder) and not part.blocks)
        if bare and isinstance(part, nn.Linear) and part.in_features == size * size * channels:
            # As `heads.flatten_classification` puts them.
            places = part.weight.view(-1, 1, size, size, channels)
            return _make_filters(name, torch.movedim(places, -1, 1))
    return None


def _make_filters(layer: str, weights: Tensor) -> Filters:
    return Filters(layer, weights.detach().float().cpu().numpy())
