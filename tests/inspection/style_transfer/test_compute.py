"""Gram matrices by their definition, losses that are 0 for the images themselves, and their gradients."""

import pytest
import torch
from torch import Tensor, nn

from foveal.core.progress import no_progress
from foveal.inspection.image_descent import total_variation
from foveal.inspection.style_transfer.compute import (
    StyleLayers,
    Targets,
    gram_matrix,
    transfer_losses,
    transfer_style,
)
from tests.support.linear_classifier import WIDE

LAYERS = StyleLayers("2", ("0", "2"))


def network() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(3, 5, 3), nn.Tanh(), nn.Conv2d(5, 4, 3)).double().requires_grad_(False)


def test_a_gram_matrix_by_its_definition() -> None:
    features = torch.randn(2, 3, 4, 5)
    expected = torch.zeros(2, 3, 3)
    for b in range(2):
        for i in range(3):
            for j in range(3):
                products = [features[b, i, y, x] * features[b, j, y, x] for y in range(4) for x in range(5)]
                expected[b, i, j] = sum(products) / 20
    torch.testing.assert_close(gram_matrix(features), expected)


def outputs_of(model: nn.Sequential, image: Tensor) -> dict[str, Tensor]:
    first = model[0](image)
    return {"0": first, "2": model[2](model[1](first))}


def test_losses_are_0_for_the_image_itself() -> None:
    model, image = network(), torch.randn(1, 3, 9, 9).double()
    outputs = outputs_of(model, image)
    targets = Targets(outputs["2"], {name: gram_matrix(outputs[name]) for name in LAYERS.styles})
    losses = transfer_losses(outputs, LAYERS, targets)
    assert (float(losses.content), float(losses.style)) == (0, 0)
    shuffled = {
        name: part.flatten(2)[..., torch.randperm(part.shape[2] ** 2)].view_as(part)
        for name, part in outputs.items()
    }
    moved = transfer_losses(shuffled, LAYERS, targets)
    assert float(moved.style) == pytest.approx(0, abs=1e-12), "style does not depend on places"
    assert float(moved.content) > 0.1


def test_the_style_is_the_mean_over_its_layers() -> None:
    outputs = {"0": torch.tensor([[[[3.0]]]]), "2": torch.tensor([[[[2.0]]]])}
    targets = Targets(torch.tensor([[[[1.0]]]]), {"0": torch.tensor([[[1.0]]]), "2": torch.tensor([[[2.0]]])})
    losses = transfer_losses(outputs, LAYERS, targets)
    assert float(losses.content) == 1
    assert float(losses.style) == pytest.approx(((9 - 1) ** 2 + ((4 - 2) / 2) ** 2) / 2)


def test_the_gradient_is_that_of_finite_differences() -> None:
    model, image, other = network(), torch.randn(1, 3, 7, 7).double(), torch.randn(1, 3, 7, 7).double()
    goal = outputs_of(model, other)
    targets = Targets(goal["2"], {name: gram_matrix(goal[name]) for name in LAYERS.styles})

    def loss(pixels: Tensor) -> Tensor:
        losses = transfer_losses(outputs_of(model, pixels), LAYERS, targets)
        return losses.content + 3 * losses.style

    assert torch.autograd.gradcheck(loss, image.requires_grad_())


def test_the_style_is_reached() -> None:
    model, content, style = network(), torch.randn(1, 3, 9, 9).double(), 2 * torch.rand(1, 3, 11, 11).double()
    found = transfer_style(model, LAYERS, content, style, WIDE, 60, 10.0, 0.0, no_progress)
    assert float(found.after.style) < 0.2 * float(found.before.style)
    assert float(found.before.content) == 0 < float(found.after.content)
    same = transfer_style(model, LAYERS, content, content, WIDE, 1, 10.0, 0.0, no_progress)
    assert float(same.before.style) == 0
    assert not model[0]._forward_hooks
    light = transfer_style(model, LAYERS, content, style, WIDE, 60, 0.01, 0.0, no_progress)
    assert light.after.style > 2 * found.after.style
    assert light.after.content < found.after.content
    smooth = transfer_style(model, LAYERS, content, style, WIDE, 60, 10.0, 10.0, no_progress)
    assert total_variation(smooth.image) < 0.5 * total_variation(found.image)
