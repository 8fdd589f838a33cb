"""What moves a unit, against all images in turn; guided backpropagation against rectifiers of one's own."""

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from foveal.core.progress import no_progress
from foveal.data.core.batching import ExampleBatch
from foveal.encoders.image import ImageEncoder
from foveal.inspection.units.compute import (
    GuidedSignals,
    PixelWindow,
    feature_maps,
    guided_backprop,
    guided_signals,
    mean_correlation,
    most_active_units,
    randomized_copy,
    receptive_windows,
    top_responses,
)
from foveal.inspection.units.view import signal_to_pixels
from foveal.models.image_networks import image_encoder
from foveal.models.sequential_networks import ConvLayer, SequentialNetwork
from foveal.ops.activation import ACTIVATIONS

SIDE = 16


class Eyes(nn.Module):
    """What all models of images have."""

    def __init__(self, encoder: nn.Module):
        super().__init__()
        self.encoder = encoder


class Order:
    """Images in batches, their rows from the last to the first."""

    def __init__(self, images: Tensor, size: int):
        self.images, self.rows = images, torch.arange(len(images)).flip(0).split(size)
        self.per_epoch = len(self.rows)

    def batch(self, epoch: int, index: int) -> ExampleBatch:
        rows = self.rows[index]
        return ExampleBatch(rows, {"source": self.images[rows]}, {}, torch.ones_like(rows))


@pytest.fixture
def model() -> Eyes:
    network = SequentialNetwork((ConvLayer(6), ConvLayer(8, pool=2), ConvLayer(9)), (), 4)
    return Eyes(network.make_encoder(3, True)).eval()


def test_the_strongest_are_those_of_all_in_turn(model: Eyes) -> None:
    images, layer, units = torch.randn(23, 3, SIDE, SIDE), "encoder.blocks.1", [5, 0]
    found = top_responses(model, layer, units, Order(images, 5), 4, no_progress)
    with torch.no_grad():
        maps = feature_maps(model, layer, images)
    for unit, responses in zip(units, found, strict=True):
        largest = maps[:, unit].amax((1, 2))
        assert [one.row for one in responses] == largest.argsort(descending=True)[:4].tolist()
        for one in responses:
            assert one.value == pytest.approx(float(largest[one.row]))
            assert float(maps[(one.row, unit, *one.position)]) == pytest.approx(one.value)


class OneWay(torch.autograd.Function):
    """A rectifier that is guided, as its paper has it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return gradient * (x > 0) * (gradient > 0)


@pytest.mark.parametrize("network", ["alexnet", "vgg-11"])
def test_every_rectifier_is_guided(network: str) -> None:
    """Five, and eight, of them; the derivative is another one."""
    model: Any = Eyes(image_encoder(network, 3, "small")).eval()
    layer = f"encoder.blocks.{len(model.encoder.blocks) - 1}"
    images = torch.randn(2, 3, 32, 32)
    units = most_active_units(model, layer, images, torch.zeros(2, 2, dtype=torch.int64))
    places = torch.zeros(2, 2, dtype=torch.int64)
    found = guided_backprop(model, layer, images, units, places)
    one_way: Callable[[Tensor], Tensor] = OneWay.apply
    pixels = images.clone().requires_grad_()
    with patch.dict(ACTIVATIONS, {"relu": one_way}):
        chosen = feature_maps(model, layer, pixels)[torch.arange(2), units, 0, 0]
    (expected,) = torch.autograd.grad(chosen.sum(), pixels)
    assert found.abs().max() > 0
    torch.testing.assert_close(found, expected)
    plain = images.clone().requires_grad_()
    (derivative,) = torch.autograd.grad(
        feature_maps(model, layer, plain)[torch.arange(2), units, 0, 0].sum(), plain
    )
    assert not torch.allclose(found, derivative)


@pytest.mark.parametrize("function", [F.relu, F.relu6, nn.ReLU(inplace=True), lambda x: x.relu()])
def test_where_all_paths_are_negative_nothing_comes_through(function: Callable[[Tensor], Tensor]) -> None:
    class Negative(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convolution = nn.Conv2d(1, 1, 1)
            nn.init.constant_(self.convolution.weight, 2.0)
            assert self.convolution.bias is not None
            nn.init.ones_(self.convolution.bias)

        def forward(self, x: Tensor) -> Tensor:
            return 5 - function(self.convolution(x))

    model, where = Eyes(ImageEncoder([Negative()], 1)), torch.zeros(1, 2, dtype=torch.int64)
    first, image = torch.zeros(1, dtype=torch.int64), torch.full((1, 1, 2, 2), 0.5)
    assert guided_backprop(model, "encoder.blocks.0", image, first, where).abs().max() == 0
    opened = guided_backprop(model, "encoder.blocks.0", -9 * image, first, where, rule=False)
    assert opened[0, 0].tolist() == [[-2, 0], [0, 0]]


def test_a_window_is_what_a_place_sees(model: Eyes) -> None:
    """3x3, 6x6 with the pooling and 10x10; less where the image ends. Shut rectifiers hide nothing."""
    images, places = torch.randn(2, 3, SIDE, SIDE), torch.tensor([[4, 5], [0, 0]])
    assert receptive_windows(model, "encoder.blocks.0", images, places) == [
        PixelWindow(3, 6, 4, 7),
        PixelWindow(0, 2, 0, 2),
    ]
    assert receptive_windows(model, "encoder.blocks.1", images, places) == [
        PixelWindow(6, 12, 8, 14),
        PixelWindow(0, 4, 0, 4),
    ]
    assert receptive_windows(model, "encoder.blocks.2", images, places) == [
        PixelWindow(4, 14, 6, 16),
        PixelWindow(0, 6, 0, 6),
    ]


def test_only_the_layer_is_drawn_anew(model: Eyes) -> None:
    before = {name: part.clone() for name, part in model.state_dict().items()}
    torch.manual_seed(3)
    other = randomized_copy(model, "encoder.blocks.1")
    again = torch.rand(3)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(3), again), "the generator stays where it was"
    for name, part in other.state_dict().items():
        assert torch.equal(model.state_dict()[name], before[name])
        assert torch.equal(part, before[name]) == ("blocks.1" not in name or name.endswith("bias")), name
    repeated = randomized_copy(model, "encoder.blocks.1").state_dict()
    assert all(torch.equal(part, repeated[name]) for name, part in other.state_dict().items())


def test_the_control_has_the_same_places(model: Eyes) -> None:
    images, places = torch.randn(12, 3, SIDE, SIDE), [(0, 0), (3, 3), (7, 7), (2, 5)] * 3
    found = guided_signals(model, "encoder.blocks.1", images, [0, 1, 2, 3] * 3, places)
    assert len(found.guided) == len(found.control) == len(found.windows) == 12
    for number, window in enumerate(found.windows):
        outside = torch.ones(SIDE, SIDE, dtype=torch.bool)
        outside[window.top : window.bottom, window.left : window.right] = False
        for signal in (found.guided, found.control):
            assert signal[number][:, outside].abs().max() == 0
    assert not torch.equal(found.guided, found.control)


def test_how_alike_they_are() -> None:
    one, whole = torch.rand(2, 3, 4, 4), [PixelWindow(0, 4, 0, 4)] * 2
    assert mean_correlation(GuidedSignals(one, 3 * one, whole)) == pytest.approx(1)
    assert mean_correlation(GuidedSignals(one, -one, whole)) == pytest.approx(1)
    assert abs(mean_correlation(GuidedSignals(one, torch.rand(2, 3, 4, 4), whole)) or 0) < 0.9
    assert mean_correlation(GuidedSignals(one, one, [PixelWindow(1, 2, 1, 2)] * 2)) is None
    other = one.clone()
    other[:, :, 2:] = torch.rand(2, 3, 2, 4)
    assert mean_correlation(GuidedSignals(one, other, [PixelWindow(0, 2, 0, 4)] * 2)) == pytest.approx(1)


def test_signals_as_pixels() -> None:
    signal = np.zeros((3, 4, 2), np.float32)
    signal[0, 0, 0], signal[2, 3, 1] = 2.0, -1.0
    assert signal_to_pixels(signal)[0, 0].tolist() == [255, 128, 128]
    assert signal_to_pixels(signal)[3, 1].tolist() == [128, 128, 64]
    assert (signal_to_pixels(np.zeros((1, 2, 2), np.float32)) == 128).all()
