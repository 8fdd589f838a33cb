"""Images made from the features of an image (Mahendran and Vedaldi 2015, equations 1 to 4).

    x* = argmin over x of |phi(x) - phi(x0)|^2 / |phi(x0)|^2 + tv * V(x)
    V(x) = mean over pixels of (x[i, j+1] - x[i, j])^2 + (x[i+1, j] - x[i, j])^2

phi are the outputs of a layer. What the layer keeps of x0 is the same in x*; the rest is the regularizer's.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.core.progress import ProgressCallback
from foveal.inspection.image_descent import descend, layer_outputs, relative_error, total_variation
from foveal.inspection.image_gradients import PixelLimits

LR = 0.1
"""The first rate of the descent."""


def invert_features(
    model: nn.Module,
    layer: str,
    image: Float[Tensor, "1 C H W"],
    start: Float[Tensor, "1 C H W"],
    limits: PixelLimits,
    steps: int,
    tv: float,
    progress: ProgressCallback,
) -> tuple[Float[Tensor, "1 C H W"], float]:
    """Return an image with nearly the same output of a layer, and the relative error of its features."""
    with layer_outputs(model, [layer]) as outputs:

        def features(pixels: Tensor) -> Tensor:
            model(pixels)
            return outputs[layer]

        with torch.no_grad():
            reference = features(image)

        def loss(pixels: Tensor) -> Tensor:
            return relative_error(features(pixels), reference) + tv * total_variation(pixels)

        inverted = descend(loss, start, limits, steps, LR, progress)
        with torch.no_grad():
            return inverted, float(relative_error(features(inverted), reference))
