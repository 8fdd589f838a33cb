"""An image with the content of one image and the style of another (Gatys et al. 2016, equations 1 to 7).

    content  |F(x) - F(content)|^2 / |F(content)|^2             F: the (D, h w) outputs of a layer
    style    mean over layers of |G(x) - G(style)|^2 / |G(style)|^2,   G = F F^T / (h w)
    loss     content + style_weight * style + tv * V(x)

The published losses have constant factors by layer; the shares here are the same for every network.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.core.progress import ProgressCallback
from foveal.inspection.image_descent import descend, layer_outputs, relative_error, total_variation
from foveal.inspection.image_gradients import PixelLimits

LR = 0.05
"""The first rate of the descent."""


class StyleLayers(NamedTuple):
    content: str
    styles: Sequence[str]

    @property
    def names(self) -> list[str]:
        return [*{self.content: None} | dict.fromkeys(self.styles)]


class TransferLosses(NamedTuple):
    content: Float[Tensor, ""]
    style: Float[Tensor, ""]


class Targets(NamedTuple):
    """The features of the content, and the Gram matrices of the style by layer."""

    content: Tensor
    grams: Mapping[str, Float[Tensor, "B D D"]]


def gram_matrix(features: Float[Tensor, "B D h w"]) -> Float[Tensor, "B D D"]:
    """Return the products of all pairs of feature maps, meaned over positions."""
    flat = features.flatten(2)
    return flat @ flat.mT / flat.shape[2]


def transfer_losses(outputs: Mapping[str, Tensor], layers: StyleLayers, targets: Targets) -> TransferLosses:
    """Return the losses of an image, from its outputs of the layers."""
    content = relative_error(outputs[layers.content], targets.content)
    styles = [relative_error(gram_matrix(outputs[name]), targets.grams[name]) for name in layers.styles]
    return TransferLosses(content, torch.stack(styles).mean())


class Transfer(NamedTuple):
    image: Float[Tensor, "1 C H W"]
    before: TransferLosses
    """The losses of the content image."""
    after: TransferLosses


def transfer_style(
    model: nn.Module,
    layers: StyleLayers,
    content: Float[Tensor, "1 C H W"],
    style: Float[Tensor, "1 C h w"],
    limits: PixelLimits,
    steps: int,
    style_weight: float,
    tv: float,
    progress: ProgressCallback,
) -> Transfer:
    """Return the image that the descent makes from the content image."""
    with layer_outputs(model, layers.names) as outputs:
        with torch.no_grad():
            model(style)
            grams = {name: gram_matrix(outputs[name]) for name in layers.styles}
            model(content)
            targets = Targets(outputs[layers.content], grams)

        def losses(image: Tensor) -> TransferLosses:
            model(image)
            return transfer_losses(outputs, layers, targets)

        def loss(image: Tensor) -> Tensor:
            now = losses(image)
            return now.content + style_weight * now.style + tv * total_variation(image)

        image = descend(loss, content, limits, steps, LR, progress)
        with torch.no_grad():
            return Transfer(image, losses(content), losses(image))
