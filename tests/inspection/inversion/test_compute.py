"""A layer that loses nothing gives the image back."""

import pytest
import torch
from torch import nn

from foveal.core.progress import no_progress
from foveal.inspection.image_descent import noise_images, relative_error, total_variation
from foveal.inspection.image_gradients import PixelLimits
from foveal.inspection.inversion.compute import invert_features
from tests.support.linear_classifier import WIDE


def orthogonal() -> nn.Module:
    layer = nn.Linear(108, 108, bias=False)
    nn.init.orthogonal_(layer.weight)
    return nn.Sequential(nn.Flatten(), layer, nn.Linear(108, 2))


@pytest.mark.parametrize(("model", "layer"), [(nn.Sequential(nn.Identity()), "0"), (orthogonal(), "1")])
def test_a_layer_that_loses_nothing_gives_the_image_back(model: nn.Module, layer: str) -> None:
    image = torch.randn(1, 3, 6, 6)
    start = noise_images(1, image[0], 0.1, 0)
    inverted, error = invert_features(model, layer, image, start, WIDE, 120, 0.0, no_progress)
    torch.testing.assert_close(inverted, image, atol=4e-2, rtol=0)
    assert error < 1e-3


def test_what_a_layer_loses_stays_as_at_the_start() -> None:
    """The layer sees the first channel alone."""
    layer = nn.Conv2d(3, 1, 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([1.0, 0.0, 0.0]).view(1, 3, 1, 1))
    model = nn.Sequential(layer)
    image, start = torch.randn(1, 3, 6, 6), torch.randn(1, 3, 6, 6)
    inverted, error = invert_features(model, "0", image, start, WIDE, 120, 0.0, no_progress)
    assert error < 1e-3
    torch.testing.assert_close(inverted[:, 1:], start[:, 1:], atol=1e-3, rtol=0)
    torch.testing.assert_close(inverted[:, 0], image[:, 0], atol=4e-2, rtol=0)
    assert not layer._forward_hooks


def test_variation_is_weighed_against_the_error() -> None:
    """Of an identity, both are squares: where their sum is smallest, a linear equation holds."""
    image, tv = torch.randn(1, 1, 6, 6, dtype=torch.float64), 0.5
    start = noise_images(1, image[0], 0.1, 0).double()
    neighbors = torch.eye(6, dtype=torch.float64).diff(dim=0)
    along, one = neighbors.T @ neighbors, torch.eye(6, dtype=torch.float64)
    laplacian = torch.kron(along, one) + torch.kron(one, along)
    equation = torch.eye(36) / image.square().sum() + tv * laplacian / 36
    expected = torch.linalg.solve(equation, image.flatten() / image.square().sum()).view_as(image)
    limits = PixelLimits(torch.full((1, 1, 1), -9.0), torch.full((1, 1, 1), 9.0))
    model = nn.Sequential(nn.Identity())
    inverted, error = invert_features(model, "0", image, start, limits, 300, tv, no_progress)
    torch.testing.assert_close(inverted, expected, atol=2e-2, rtol=0)
    assert error == pytest.approx(float(relative_error(expected, image)), abs=1e-2)


def test_errors_and_variation_by_hand() -> None:
    image = torch.tensor([[[[1.0, 3.0], [1.0, 0.0]]]])
    assert float(total_variation(image)) == pytest.approx((0 + 9 + 4 + 1) / 4)
    assert float(relative_error(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0]))) == pytest.approx(25 / 16)
