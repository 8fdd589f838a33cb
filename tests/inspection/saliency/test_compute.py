"""Saliency of a linear model is known: the gradient is its weights, and each pixel's part is w * x."""

import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn

from foveal.inspection.image_gradients import ImageScore, class_score, frozen, logits_of, score_gradient
from foveal.inspection.saliency.compute import (
    gradient_size,
    integrated_gradients,
    occlusion,
    random_patches,
    salient_patches,
    smooth_gradient,
)
from tests.support.named_networks import make_network

SHAPE = (3, 8, 8)


class Curved(nn.Module):
    """Logits that are no linear function of the image."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(192, 9), nn.Tanh(), nn.Linear(9, 4))

    def forward(self, images: Tensor) -> Tensor:
        return self.layers(images)


@pytest.fixture
def weights() -> Float[Tensor, "C H W"]:
    return torch.randn(SHAPE, dtype=torch.float64)


def linear(weights: Tensor) -> ImageScore:
    return lambda images: (images * weights).flatten(1).sum(1) + 3


def test_of_a_linear_model_all_are_its_weights(weights: Tensor) -> None:
    score, image, baseline = linear(weights), torch.randn_like(weights), torch.randn_like(weights)
    torch.testing.assert_close(score_gradient(score, image[None])[0], weights)
    torch.testing.assert_close(smooth_gradient(score, image, 0.3, 20, 0), weights)
    found = integrated_gradients(score, image, baseline, 5)
    torch.testing.assert_close(found.attributions, (image - baseline) * weights)
    assert found.change == pytest.approx(float((weights * (image - baseline)).sum()))
    assert found.gap == pytest.approx(0, abs=1e-9)
    assert torch.equal(gradient_size(-weights), weights.abs().max(0).values)


def test_the_gradient_is_that_of_finite_differences() -> None:
    model = Curved().double()
    score, image = class_score(model, 2), torch.randn(SHAPE, dtype=torch.float64)
    gradient = score_gradient(score, image[None])[0]
    for place in [(0, 0, 0), (2, 3, 7), (1, 7, 2)]:
        step = torch.zeros_like(image)
        step[place] = 1e-5
        with torch.no_grad():
            slope = (score((image + step)[None]) - score((image - step)[None])) / 2e-5
        assert float(gradient[place]) == pytest.approx(float(slope), rel=1e-6)


def test_integrated_gradients_are_complete() -> None:
    model = Curved().double()
    score, image = class_score(model, 1), torch.randn(SHAPE, dtype=torch.float64)
    baseline = torch.zeros_like(image)
    gaps = [abs(integrated_gradients(score, image, baseline, steps).gap) for steps in (4, 32, 256)]
    with torch.no_grad():
        change = float(score(image[None]) - score(baseline[None]))
    assert gaps[2] < 1e-4 * abs(change)
    assert gaps[2] < gaps[1] < gaps[0]
    assert integrated_gradients(score, image, baseline, 4).change == pytest.approx(change)


def test_smoothgrad_without_noise_is_the_gradient() -> None:
    model = Curved().double()
    score, image = class_score(model, 1), torch.randn(SHAPE, dtype=torch.float64)
    gradient = score_gradient(score, image[None])[0]
    torch.testing.assert_close(smooth_gradient(score, image, 0.0, 17, 0), gradient)
    noisy = smooth_gradient(score, image, 0.2, 17, 0)
    assert not torch.allclose(noisy, gradient)
    assert torch.equal(noisy, smooth_gradient(score, image, 0.2, 17, 0))
    assert not torch.equal(noisy, smooth_gradient(score, image, 0.2, 17, 1))


def test_the_noise_of_smoothgrad_is_a_share_of_the_range() -> None:
    """The gradient of x^3 / 3 is x^2, and its mean over noise of deviation s is x^2 + s^2."""
    image = torch.linspace(-1, 3, 192, dtype=torch.float64).view(SHAPE)
    smooth = smooth_gradient(lambda images: images.pow(3).flatten(1).sum(1) / 3, image, 0.25, 400, 0)
    assert float((smooth - image.square()).mean()) == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize(("window", "stride"), [(1, 1), (3, 2), (8, 4), (20, 1)])
def test_occlusion_as_one_window_after_the_other(window: int, stride: int) -> None:
    model = Curved().double()
    score, image = class_score(model, 0), torch.randn(SHAPE, dtype=torch.float64)
    baseline = torch.randn_like(image)
    starts = sorted({*range(0, max(0, 8 - window), stride), max(0, 8 - window)})
    drops: list[list[list[float]]] = [[[] for _ in range(8)] for _ in range(8)]
    for top in starts:
        for left in starts:
            changed = image.clone()
            for channel in range(3):
                for row in range(top, min(8, top + window)):
                    for column in range(left, min(8, left + window)):
                        changed[channel, row, column] = baseline[channel, row, column]
            drop = float((score(image[None]) - score(changed[None])).detach())
            for row in range(top, min(8, top + window)):
                for column in range(left, min(8, left + window)):
                    drops[row][column].append(drop)
    expected = torch.tensor([[sum(own) / len(own) for own in row] for row in drops])
    torch.testing.assert_close(occlusion(score, image, baseline, window, stride), expected, check_dtype=False)


def test_patches_are_the_most_salient() -> None:
    saliency = torch.zeros(8, 8)
    saliency[2:4, 6:8], saliency[4:6, 0:2] = 2.0, 1.0
    mask = salient_patches(saliency, 2, 1 / 16)
    assert mask.nonzero().tolist() == [[2, 6], [2, 7], [3, 6], [3, 7]]
    assert salient_patches(saliency, 2, 2 / 16)[4:6, 0:2].all()
    assert salient_patches(saliency[:7, :5], 2, 0.001).shape == (7, 5)
    generator = torch.Generator().manual_seed(0)
    many = [random_patches((8, 8), 2, 0.25, generator) for _ in range(200)]
    assert {int(one.sum()) for one in many} == {16}
    shares = torch.stack(many).float().mean(0)
    assert shares.min() > 0.12
    assert shares.max() < 0.4


def test_a_frozen_model_is_as_before() -> None:
    model = make_network("resnet-20", 8, 3)
    model.train()
    model.head.eval()
    first = next(model.parameters())
    first.requires_grad_(False)
    modes = {name: module.training for name, module in model.named_modules()}
    wanted = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with frozen(model):
        assert not any(parameter.requires_grad for parameter in model.parameters())
        assert not any(module.training for module in model.modules())
        logits_of(model, torch.randn(2, 3, 8, 8))
    assert modes == {name: module.training for name, module in model.named_modules()}
    assert wanted == {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
