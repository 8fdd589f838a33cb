"""Descent on the pixels of images, for views that make images."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.progress import ProgressCallback
from foveal.inspection.image_gradients import PixelLimits

BLUR_EVERY = 4
"""Steps between blurs."""


def descend(
    loss: Callable[[Float[Tensor, "B C H W"]], Float[Tensor, ""]],
    start: Float[Tensor, "B C H W"],
    limits: PixelLimits,
    steps: int,
    lr: float,
    progress: ProgressCallback,
    blur: float = 0.0,
) -> Float[Tensor, "B C H W"]:
    """Return images with a small loss, by Adam from the start, with a rate that falls to zero by a cosine.

    Pixels stay between black and white. Every few steps but in the last quarter, the images are blurred with
    a standard deviation of `blur` pixels; 0 is none.
    """
    images = start.detach().clone().requires_grad_()
    optimizer = torch.optim.Adam([images], lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, steps))
    for step in range(steps):
        progress(step, steps)
        with torch.enable_grad():
            (images.grad,) = torch.autograd.grad(loss(images), images)
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            if blur and step % BLUR_EVERY == BLUR_EVERY - 1 and step < 3 * steps // 4:
                images.copy_(gaussian_blur(images, blur))
            images.clamp_(limits.black, limits.white)
    return images.detach()


def gaussian_blur(images: Float[Tensor, "B C H W"], deviation: float) -> Float[Tensor, "B C H W"]:
    """Return the images blurred; beyond the border, the last pixels are repeated."""
    radius = max(1, round(3 * deviation))
    offsets = torch.arange(-radius, radius + 1, device=images.device, dtype=images.dtype)
    kernel = (-offsets.square() / (2 * deviation**2)).exp()
    kernel = (kernel / kernel.sum()).expand(images.shape[1], 1, 1, -1)
    channels, side = images.shape[1], (radius, radius)
    across = F.conv2d(F.pad(images, (*side, 0, 0), "replicate"), kernel, groups=channels)
    return F.conv2d(F.pad(across, (0, 0, *side), "replicate"), kernel.mT, groups=channels)


def total_variation(images: Float[Tensor, "B C H W"]) -> Float[Tensor, ""]:
    """Return the squared differences of neighbors in both directions, meaned over all values."""
    down, across = images.diff(dim=2).square().sum(), images.diff(dim=3).square().sum()
    return (down + across) / images.numel()


def noise_images(count: int, image: Float[Tensor, "C H W"], deviation: float, seed: int) -> Tensor:
    """Return `count` images of noise around the mean color, of the shape of an image."""
    normal = torch.randn((count, *image.shape), generator=torch.Generator().manual_seed(seed))
    return (deviation * normal).to(image.device)


@contextmanager
def layer_outputs(model: nn.Module, layers: Sequence[str]) -> Iterator[dict[str, Tensor]]:
    """Return a context with a dict, which has the last output of each layer by name."""
    outputs: dict[str, Tensor] = {}

    def keep(name: str) -> Any:
        def hook(_: nn.Module, inputs: Any, output: Any) -> None:
            outputs[name] = output[0] if isinstance(output, tuple) else output

        return hook

    hooks = [model.get_submodule(name).register_forward_hook(keep(name)) for name in layers]
    try:
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()


def relative_error(features: Tensor, reference: Tensor) -> Float[Tensor, ""]:
    """Return the squared distance of features to the reference, as a share of the reference's square."""
    return (features - reference).square().sum() / reference.square().sum()
