"""The best image of a linear classifier is known: its weights."""

import torch
from torch.nn import functional as F

from foveal.core.progress import no_progress
from foveal.inspection.class_images.compute import maximize_logits
from foveal.inspection.image_descent import gaussian_blur, noise_images
from foveal.inspection.image_gradients import PixelLimits
from tests.support.linear_classifier import WIDE, LinearClassifier


def test_of_a_linear_model_it_is_its_weights() -> None:
    """`w x - l2 x^2` is largest at `w / (2 l2)`."""
    model, labels = LinearClassifier(3), torch.tensor([2, 0])
    start = noise_images(2, torch.zeros(3, 6, 6), 0.1, 0)
    images = maximize_logits(model, labels, start, WIDE, 120, 0.5, 0.0, no_progress)
    torch.testing.assert_close(images, model.weight.detach()[labels], atol=2e-2, rtol=0)
    assert model.weight.grad is None


def test_pixels_stay_between_black_and_white() -> None:
    limits = PixelLimits(torch.full((3, 1, 1), -0.5), torch.full((3, 1, 1), 0.25))
    start = torch.zeros(1, 3, 6, 6)
    images = maximize_logits(LinearClassifier(2), torch.tensor([1]), start, limits, 30, 0.0, 0.0, no_progress)
    assert images.min() == -0.5
    assert images.max() == 0.25


def test_the_blur_is_that_of_a_gaussian() -> None:
    image = torch.zeros(1, 2, 15, 15, dtype=torch.float64)
    image[0, 0, 7, 7], image[0, 1] = 1.0, 3.0
    blurred = gaussian_blur(image, 1.2)
    offsets = torch.arange(-4, 5)
    line = (-(offsets**2) / 2 / 1.2**2).exp().double()
    expected = torch.outer(line, line) / line.sum() ** 2
    torch.testing.assert_close(blurred[0, 0, 3:12, 3:12], expected)
    torch.testing.assert_close(blurred[0, 1], image[0, 1])
    across = F.avg_pool2d(gaussian_blur(image, 0.01), 1)
    torch.testing.assert_close(across, image)


def test_blurred_ascents_are_smoother_and_repeat() -> None:
    model, start = LinearClassifier(2), noise_images(1, torch.zeros(3, 6, 6), 0.1, 5)
    plain, blurred, again = (
        maximize_logits(model, torch.tensor([0]), start, WIDE, 40, 0.1, blur, no_progress)
        for blur in (0.0, 1.0, 1.0)
    )
    assert torch.equal(blurred, again)
    assert blurred.diff(dim=3).square().mean() < plain.diff(dim=3).square().mean()
