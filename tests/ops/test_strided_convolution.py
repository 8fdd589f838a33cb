"""Convolutions of inputs that are shorter than their stride, whose gradients torch leaves unwritten."""

import pytest
import torch
from torch import Tensor, nn

from foveal.layers.audio.subsampling import ConvSubsampling
from foveal.layers.vision.conv2d import Conv2d

LAYERS = {
    "a map of one pixel": (lambda: Conv2d(64, 64, 3, stride=2), (4, 64, 1, 1)),
    "a row of pixels": (lambda: Conv2d(64, 64, 5, stride=2), (4, 64, 1, 9)),
    "a column of pixels": (lambda: Conv2d(16, 16, 7, stride=4), (2, 16, 9, 3)),
    "a step of sound": (lambda: ConvSubsampling(64, 64).second, (4, 64, 1)),
    "an image": (lambda: Conv2d(16, 16, 3, stride=2), (2, 16, 8, 8)),
}


def fill_freed_memory() -> None:
    """Leave large numbers where tensors of the sizes of the test were."""
    for size in (
        1 << 10,
        1 << 12,
        1 << 16,
        1 << 20,
        *(width * width * area for width in (16, 64) for area in (3, 9, 25, 49)),
    ):
        for dtype in (torch.float32, torch.bfloat16):
            torch.full((size,), 1e30, dtype=dtype)


def gradients(layer: nn.Module, x: Tensor, upward: Tensor) -> list[Tensor]:
    x = x.detach().requires_grad_()
    layer.zero_grad()
    y = layer(x)
    fill_freed_memory()
    y.backward(upward.to(y.dtype))
    weight = next(layer.parameters())
    assert x.grad is not None
    assert weight.grad is not None
    return [y.detach(), x.grad, weight.grad]


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_in_bfloat16_are_near_those_in_float64(name: str) -> None:
    make, shape = LAYERS[name]
    torch.manual_seed(0)
    layer, x = make().bfloat16(), torch.randn(shape).bfloat16()
    upward = torch.randn_like(layer(x))
    exact = make().double()
    exact.load_state_dict(layer.double().state_dict())
    wanted = gradients(exact, x.double(), upward)
    layer.bfloat16()
    for _ in range(4):
        for given, near in zip(gradients(layer, x, upward), wanted, strict=True):
            torch.testing.assert_close(given.double(), near, rtol=0.05, atol=0.02 * float(near.abs().max()))
