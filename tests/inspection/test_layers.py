"""Layers described: counts by hand, and receptive fields as the gradient finds them."""

import pytest
import torch
from torch import Tensor, nn

from foveal.inspection.layers import Layer, layers_of
from foveal.layers.memory_attention import FullAttention


def only(model: nn.Module, *shape: int) -> Layer:
    (layer,) = layers_of(model, shape)
    return layer


def test_the_lecture_s_convolution():
    layer = only(nn.Conv2d(3, 10, 5, padding=2), 3, 32, 32)
    assert layer == Layer("", "Conv2d", (10, 32, 32), 760, 768_000, 10 * 32 * 32 * 4, (5, 5))


@pytest.mark.parametrize(
    ("model", "shape", "expected"),
    [
        (nn.Conv1d(4, 6, 3), (4, 20), ((6, 18), 6 * (4 * 3 + 1), 18 * 6 * 4 * 3, (3,))),
        (nn.Conv2d(4, 6, 3, stride=2, groups=2), (4, 9, 7), ((6, 4, 3), 6 * 19, 12 * 6 * 2 * 9, (3, 3))),
        (nn.Conv3d(2, 3, 2, bias=False), (2, 4, 4, 4), ((3, 3, 3, 3), 48, 27 * 48, (2, 2, 2))),
        (nn.Linear(5, 7), (5,), ((7,), 42, 35, ())),
        (nn.MaxPool2d(3, 2), (4, 9, 9), ((4, 4, 4), 0, 0, (3, 3))),
        (nn.AdaptiveAvgPool2d(1), (4, 9, 6), ((4, 1, 1), 0, 0, (9, 6))),
    ],
)
def test_by_hand(model, shape, expected):
    layer = only(model, *shape)
    assert (layer.output, layer.parameters, layer.multiply_adds, layer.field) == expected


class Both(nn.Module):
    """Two ways of different reach, every second place of one of them, and functions without a module."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Conv2d(2, 3, (5, 3), stride=2, padding=(2, 1), dilation=(1, 2))
        self.after = nn.Sequential(nn.AvgPool2d(2), nn.Conv2d(3, 4, 3, padding=1))
        self.scale = nn.Parameter(torch.ones(3, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.pad(x, (0, 0, 1, 1))
        short = nn.functional.pad(x, (0, 0, 0, 0, 0, 1))[:, :, ::2, 1:-1:2]
        return self.after(self.scale * (self.wide(x) + short))


def seen(model: nn.Module, *shape: int) -> tuple[int, ...]:
    """Sides of what one place in the middle depends on, by its gradient, with weights that can't cancel."""
    for weight in model.parameters():
        nn.init.uniform_(weight, 0.5, 1.0)
    x = torch.rand(1, *shape, requires_grad=True)
    y = model(x)
    middle = tuple(size // 2 for size in y.shape[2:])
    y[(0, 0, *middle)].backward()
    assert x.grad is not None
    places = x.grad[0].abs().sum(0).nonzero()
    return tuple((places.amax(0) - places.amin(0) + 1).tolist())


@pytest.mark.parametrize("model", [Both(), nn.Sequential(Both(), nn.Conv2d(4, 2, 3, dilation=2))])
def test_fields_are_what_the_gradient_finds(model):
    last = next(layer for layer in reversed(layers_of(model, (2, 90, 90))) if layer.field)
    assert last.field == seen(model, 2, 90, 90)


def test_modules_that_multiply_by_themselves_and_those_inside():
    attention = FullAttention(8, 2)
    layers = {layer.name: layer for layer in layers_of(attention, (5, 8))}
    # Queries, keys and values in one product, the scores, and the mean of the values.
    assert layers[""].multiply_adds == 3 * 5 * 8 * 8 + 2 * 5 * 5 * 8
    assert layers["output"].multiply_adds == 5 * 8 * 8
    assert {name: layer.parameters for name, layer in layers.items()} == {"": 3 * 72, "output": 72}
    assert all(weight.device.type == "cpu" for weight in attention.parameters())


def test_own_parameters_are_counted_once():
    layers = {layer.name: layer for layer in layers_of(Both(), (2, 30, 30))}
    assert layers[""].parameters == 3
    assert layers[""].multiply_adds == 0
    assert list(layers) == ["wide", "after.0", "after.1", ""]
