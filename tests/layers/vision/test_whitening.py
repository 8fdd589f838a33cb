"""Whitened patches are uncorrelated and of size one, with both signs, whatever they were."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from foveal.layers.data_dependent_init import DataDependentInit
from foveal.layers.vision.whitening import EPSILON, WhiteningConv2d


@pytest.fixture
def images() -> Tensor:
    """Neighbours and channels go together; the second channel is small."""
    rough = torch.randn(300, 3, 14, 14)
    smooth = F.avg_pool2d(rough, 3, stride=1) * torch.tensor([3.0, 0.5, 1.0])[:, None, None]
    return smooth + smooth.mean(1, keepdim=True)


@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_outputs_are_uncorrelated(kernel, images):
    layer = WhiteningConv2d(3, kernel)
    assert isinstance(layer, DataDependentInit)
    layer.fit(images)
    count = 3 * kernel**2
    with torch.no_grad():
        y = layer(images).transpose(0, 1).flatten(1)
    assert len(y) == 2 * count
    assert torch.equal(y[count:], -y[:count])
    moments = (y[:count] @ y[:count].T).double() / y.shape[1]
    # In a direction of variance v, v / (v + EPSILON) is left.
    patches = F.unfold(images, kernel).transpose(1, 2).reshape(-1, count).double()
    variances = torch.linalg.eigvalsh(patches.T @ patches / len(patches))
    wanted = (variances / (variances + EPSILON)).diag().float().double()
    torch.testing.assert_close(moments, wanted, rtol=1e-3, atol=1e-3)


def test_fitted_again_is_the_same(images):
    first, second = WhiteningConv2d(3, 2), WhiteningConv2d(3, 2)
    first.fit(images)
    second.fit(images.flip(0))
    torch.testing.assert_close(first.weight, second.weight, rtol=1e-3, atol=1e-3)


def test_the_bias_alone_is_learned(images):
    layer = WhiteningConv2d(3, 2)
    assert [name for name, weight in layer.named_parameters() if weight.requires_grad] == ["bias"]


def test_pictures_of_one_colour_leave_it_finite():
    layer = WhiteningConv2d(3, 2)
    layer.fit(torch.zeros(4, 3, 8, 8))
    assert layer.weight.isfinite().all()
