"""Images that raise the logit of a class (Simonyan et al. 2014, section 2; Yosinski et al. 2015, section 3).

    x* = argmax over x of f_c(x) - l2 * |x|^2

x is standardized, so that 0 is the mean color. The ascent starts at small noise. Every few steps the image is
blurred, which removes high frequencies that raise the logit and look like noise.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from foveal.core.progress import ProgressCallback
from foveal.inspection.image_descent import descend
from foveal.inspection.image_gradients import PixelLimits, logits_of

START_NOISE, LR = 0.1, 0.1
"""Standard deviation of the noise at the start, and the first rate of the ascent."""


def maximize_logits(
    model: nn.Module,
    labels: Int[Tensor, " B"],
    start: Float[Tensor, "B C H W"],
    limits: PixelLimits,
    steps: int,
    l2: float,
    blur: float,
    progress: ProgressCallback,
) -> Float[Tensor, "B C H W"]:
    """Return an image for each of the labels, from its start. `blur` is in pixels."""
    rows = torch.arange(len(labels), device=start.device)

    def loss(images: Float[Tensor, "B C H W"]) -> Float[Tensor, ""]:
        return l2 * images.square().sum() - logits_of(model, images)[rows, labels].sum()

    return descend(loss, start, limits, steps, LR, progress, blur)
