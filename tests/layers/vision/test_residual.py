"""Convolutions with norms and residual blocks against their equations, and their first weights."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from foveal.layers.vision.conv2d import BatchNorm2d, Conv2d, ConvNormAct
from foveal.layers.vision.residual import ResidualBlock, basic_block, bottleneck_block

C, SIZE = 8, 5


def shaken(module: nn.Module) -> nn.Module:
    """In float64, far from its first weights and statistics."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            assert part.running_var is not None
            assert part.running_mean is not None
            nn.init.uniform_(part.running_var, 0.5, 2)
            nn.init.normal_(part.running_mean)
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -0.8, 0.8)
    return module.double()


def normed(x: Tensor, part: ConvNormAct, stride: int, training: bool) -> Tensor:
    """A convolution and Ioffe and Szegedy's algorithm 1, written out."""
    x = conv2d(x, part.convolution.weight, stride=stride, padding=part.convolution.weight.shape[-1] // 2)
    norm: Any = part.norm
    mean, variance = norm.running_mean, norm.running_var
    if training:
        mean = x.mean((0, 2, 3))
        variance = (x - mean[:, None, None]).square().mean((0, 2, 3))
    unit = (x - mean[:, None, None]) / (variance[:, None, None] + 1e-5).sqrt()
    return norm.weight[:, None, None] * unit + norm.bias[:, None, None]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shortcut", ["projection", "padded", "none"])
@pytest.mark.parametrize(("body", "strides"), [(basic_block, (0, 1)), (bottleneck_block, (1, 0, 1))])
@pytest.mark.parametrize(("d_out", "stride"), [(C, 1), (2 * C, 1), (2 * C, 2), (C, 2)])
def test_a_block_equals_its_equation(body, strides, shortcut, d_out, stride, training):
    """`strides` has the place of the stride: 0 there, 1 elsewhere."""
    block: Any = shaken(ResidualBlock(body(C, d_out, stride), C, d_out, stride, shortcut)).train(training)
    x = torch.randn(3, C, SIZE, SIZE, dtype=torch.float64)
    y = x
    for number, (part, own) in enumerate(zip(block.body, strides, strict=True)):
        y = normed(y, part, own or stride, training)
        if number < len(strides) - 1:
            y = y.clamp(min=0)
    if shortcut != "none" and (d_out, stride) == (C, 1):
        y = y + x
    elif shortcut == "projection":
        y = y + normed(x, block.shortcut, stride, training)
    elif shortcut == "padded":
        kept = x[:, :, range(0, SIZE, stride)][..., range(0, SIZE, stride)]
        y = y + torch.cat([kept, kept.new_zeros(3, d_out - C, *kept.shape[2:])], 1)
    found = block(x)
    assert found.shape == (3, d_out, math.ceil(SIZE / stride), math.ceil(SIZE / stride))
    torch.testing.assert_close(found, y.clamp(min=0), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("bias", "groups", "fan"), [(False, 1, 40 * 9), (True, 1, 30 * 9), (False, 10, 4 * 9), (True, 10, 3 * 9)]
)
def test_first_weights_of_convolutions(bias, groups, fan):
    layer = Conv2d(30, 40, 3, bias=bias, groups=groups)
    weight = layer.weight.detach()
    assert abs(float(weight.std()) / math.sqrt(2 / fan) - 1) < 0.05
    assert float(weight.abs().max()) > 2.5 * math.sqrt(2 / fan)
    assert (layer.bias is not None) == bias
    assert layer.bias is None or layer.bias.eq(0).all()


def test_a_frozen_norm_is_in_training_what_it_is_in_use():
    norm = shaken(BatchNorm2d(C)).requires_grad_(False)
    before = [buffer.clone() for buffer in norm.buffers()]
    x = torch.randn(3, C, 2, 2, dtype=torch.float64)
    found = norm(x)
    assert all(map(torch.equal, before, norm.buffers()))
    torch.testing.assert_close(found, norm.eval()(x), rtol=1e-10, atol=1e-10)


def test_one_value_a_channel_is_normalised_by_the_running_statistics():
    norm: Any = shaken(BatchNorm2d(C))
    x = torch.randn(1, C, 1, 1, dtype=torch.float64)
    with pytest.raises(ValueError, match="more than 1 value"):
        nn.BatchNorm2d(C).double()(x)
    before = [buffer.clone() for buffer in norm.buffers()]
    found = norm(x)
    assert all(map(torch.equal, before, norm.buffers()))
    torch.testing.assert_close(found, norm.eval()(x), rtol=1e-10, atol=1e-10)
    norm.train()(torch.randn(2, C, 1, 1, dtype=torch.float64))
    assert not torch.equal(before[0], norm.running_mean)
