"""Descent on the pixels of images, for views that make images."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.errors import UserError
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

    The steps are those of the Fourier coefficients, divided by their frequencies (Mordvintsev et al. 2018):
    in pixels, the few low frequencies that natural images mostly have would hardly move. Pixels stay between
    black and white. Every few steps but in the last quarter, the images are blurred with a standard deviation
    of `blur` pixels; 0 is none.

    Raises: UserError: a gradient is not finite.
    """
    images = start.detach().clone()
    spectrum = _to_spectrum(images).requires_grad_()
    optimizer = torch.optim.Adam([spectrum], lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, steps))
    for step in range(steps):
        progress(step, steps)
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(loss(_to_pixels(spectrum, start)), spectrum)
        if not gradient.isfinite().all():
            raise UserError(
                f"step {step + 1} of the descent: the gradient is not finite; lower the weights of penalties"
            )
        spectrum.grad = gradient
        optimizer.step()
        schedule.step()
        with torch.no_grad():
            images = _to_pixels(spectrum, start)
            if blur and step % BLUR_EVERY == BLUR_EVERY - 1 and step < 3 * steps // 4:
                images = gaussian_blur(images, blur)
            images = images.clamp(limits.black, limits.white)
            spectrum.copy_(_to_spectrum(images))
    return images


def _frequencies(images: Float[Tensor, "B C H W"]) -> Float[Tensor, "H F 1"]:
    """Return the frequency of each coefficient of real images, at least that of one wave in an image."""
    H, W = images.shape[2:]
    place = {"device": images.device, "dtype": images.dtype}
    down, across = torch.fft.fftfreq(H, **place), torch.fft.rfftfreq(W, **place)
    frequencies = (down[:, None].square() + across.square()).sqrt()
    return frequencies.clamp(min=1 / max(H, W))[:, :, None]


def _to_spectrum(images: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H F 2"]:
    coefficients = torch.fft.rfft2(images, norm="ortho")
    return torch.view_as_real(coefficients) * _frequencies(images)


def _to_pixels(spectrum: Float[Tensor, "B C H F 2"], like: Float[Tensor, "B C H W"]) -> Tensor:
    H, W = like.shape[2:]
    coefficients = torch.view_as_complex(spectrum / _frequencies(like))
    return torch.fft.irfft2(coefficients, s=(H, W), norm="ortho")


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
