"""Layers described: counts by hand, and receptive fields as the gradient finds them."""

import pytest
import torch
from torch import Tensor, nn

from foveal.inspection.layers.compute import LayerSummary, summarize_layers
from foveal.inspection.layers.view import layers_payload
from foveal.inspection.panels import Bars, Table
from foveal.layers.mixers.full_attention import FullAttention
from foveal.layers.vision.attention2d import SelfAttention2d
from foveal.layers.vision.convnext import ConvNeXtBlock, LayerNorm2d
from foveal.layers.vision.residual import ResidualBlock, basic_block
from foveal.models.image_networks import image_encoder


def only(model: nn.Module, *shape: int) -> LayerSummary:
    (layer,) = summarize_layers(model, shape)
    return layer


def test_the_lecture_s_convolution():
    layer = only(nn.Conv2d(3, 10, 5, padding=2), 3, 32, 32)
    assert layer == LayerSummary("", "Conv2d", (10, 32, 32), 760, 768_000, 10 * 32 * 32 * 4, (5, 5))


@pytest.mark.parametrize(
    ("model", "shape", "expected"),
    [
        (nn.Conv1d(4, 6, 3), (4, 20), ((6, 18), 6 * (4 * 3 + 1), 18 * 6 * 4 * 3, (3,))),
        (nn.Conv2d(4, 6, 3, stride=2, groups=2), (4, 9, 7), ((6, 4, 3), 6 * 19, 12 * 6 * 2 * 9, (3, 3))),
        (nn.Conv3d(2, 3, 2, bias=False), (2, 4, 4, 4), ((3, 3, 3, 3), 48, 27 * 48, (2, 2, 2))),
        (nn.Linear(5, 7), (5,), ((7,), 42, 35, ())),
        (nn.MaxPool2d(3, 2), (4, 9, 9), ((4, 4, 4), 0, 0, (3, 3))),
        (nn.AdaptiveAvgPool2d(1), (4, 9, 6), ((4, 1, 1), 0, 0, (9, 6))),
        (nn.AvgPool1d(3), (4, 20), ((4, 6), 0, 0, (3,))),
        (nn.MaxPool1d(3, 2, dilation=2), (4, 20), ((4, 8), 0, 0, (5,))),
        (nn.AvgPool3d(2), (4, 6, 6, 6), ((4, 3, 3, 3), 0, 0, (2, 2, 2))),
        (nn.MaxPool3d((1, 2, 3)), (4, 6, 6, 6), ((4, 6, 3, 2), 0, 0, (1, 2, 3))),
        (nn.AdaptiveAvgPool1d(5), (4, 20), ((4, 5), 0, 0, (4,))),
        (nn.AdaptiveMaxPool2d(2), (4, 6, 6), ((4, 2, 2), 0, 0, (3, 3))),
        (nn.AdaptiveAvgPool3d(1), (4, 2, 3, 4), ((4, 1, 1, 1), 0, 0, (2, 3, 4))),
        (nn.BatchNorm1d(4), (4, 20), ((4, 20), 8, 0, (1,))),
        (nn.BatchNorm2d(4, affine=False), (4, 5, 6), ((4, 5, 6), 0, 0, (1, 1))),
        (nn.BatchNorm3d(4), (4, 2, 3, 4), ((4, 2, 3, 4), 8, 0, (1, 1, 1))),
        (nn.LayerNorm([4, 5, 6]), (4, 5, 6), ((4, 5, 6), 240, 0, (1, 1))),
        (nn.InstanceNorm1d(4), (4, 20), ((4, 20), 0, 0, (1,))),
        (nn.InstanceNorm2d(4, affine=True), (4, 5, 6), ((4, 5, 6), 8, 0, (1, 1))),
        (nn.InstanceNorm3d(4), (4, 2, 3, 4), ((4, 2, 3, 4), 0, 0, (1, 1, 1))),
        (nn.GroupNorm(2, 4), (4, 5, 6), ((4, 5, 6), 8, 0, (1, 1))),
        (nn.Dropout(), (4, 5, 6), ((4, 5, 6), 0, 0, (1, 1))),
        (nn.Dropout1d(), (4, 20), ((4, 20), 0, 0, (1,))),
        (nn.Dropout3d(), (4, 2, 3, 4), ((4, 2, 3, 4), 0, 0, (1, 1, 1))),
        (nn.Flatten(), (4, 5, 6), ((120,), 0, 0, ())),
        (nn.ConvTranspose2d(4, 2, 3, bias=False), (4, 5, 5), ((2, 7, 7), 72, 25 * 72, ())),
    ],
    ids=lambda part: str(part) if isinstance(part, nn.Module) else "",
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


class Scaled(nn.Module):
    """Numbers made of the whole map, as those of squeeze and excitation, and a sum in place."""

    def forward(self, x: Tensor) -> Tensor:
        y = x * x.mean((2, 3), keepdim=True)
        y += nn.functional.avg_pool2d(x, 3, 1, 1)
        return y


@pytest.mark.parametrize(
    ("model", "sides"),
    [
        (Both(), (90, 90)),
        (nn.Sequential(Both(), nn.Conv2d(4, 2, 3, dilation=2)), (90, 90)),
        (nn.Sequential(nn.Conv1d(2, 3, 5), nn.MaxPool1d(2), nn.Conv1d(3, 1, 3, dilation=3)), (60,)),
        (nn.Sequential(nn.Conv3d(2, 1, (1, 2, 3), stride=2), nn.AvgPool3d(2)), (16, 16, 16)),
        (
            nn.Sequential(nn.Conv2d(2, 4, 4, 4), ConvNeXtBlock(4), LayerNorm2d(4), nn.Conv2d(4, 4, 2, 2)),
            (96, 96),
        ),
        (nn.Sequential(ResidualBlock(basic_block(2, 3, 2), 2, 3, 2, "padded").eval(), nn.ReLU()), (20, 20)),
        (nn.Sequential(nn.Conv2d(2, 2, 3), Scaled()), (12, 12)),
        (nn.Sequential(nn.Conv2d(2, 2, 3, padding=1, padding_mode="reflect"), nn.ReLU()), (12, 12)),
    ],
)
def test_fields_are_what_the_gradient_finds(model, sides):
    last = summarize_layers(model, (2, *sides))[-1]
    assert last.field == seen(model, 2, *sides)


def test_behind_attention_a_place_may_see_anything():
    """And so may what is added to it."""
    layers = summarize_layers(
        nn.Sequential(nn.Conv2d(2, 8, 3), SelfAttention2d(8), nn.Conv2d(8, 8, 3)), (2, 9, 9)
    )
    fields = {layer.name: layer.field for layer in layers}
    assert (fields["0"], fields["1"], fields["2"]) == ((3, 3), (), ())


def test_modules_that_multiply_by_themselves_and_those_inside():
    attention = FullAttention(8, 2)
    layers = {layer.name: layer for layer in summarize_layers(attention, (5, 8))}
    # Queries, keys and values in one product, the scores, and the mean of the values.
    assert layers[""].multiply_adds == 3 * 5 * 8 * 8 + 2 * 5 * 5 * 8
    assert layers["output"].multiply_adds == 5 * 8 * 8
    assert {name: layer.parameters for name, layer in layers.items()} == {"": 3 * 72, "output": 72}
    assert all(weight.device.type == "cpu" for weight in attention.parameters())


def test_own_parameters_are_counted_once():
    layers = {layer.name: layer for layer in summarize_layers(Both(), (2, 30, 30))}
    assert layers[""].parameters == 3
    assert layers[""].multiply_adds == 0
    assert list(layers) == ["wide", "after.0", "after.1", ""]


def test_the_payload_has_what_each_layer_costs() -> None:
    model = image_encoder("lenet-5", 1, "published", size=32)
    layers = summarize_layers(model, (1, 32, 32))
    payload = layers_payload("run", (1, 32, 32), layers)
    parameters, adds, table = payload.panels
    assert isinstance(parameters, Bars)
    assert isinstance(adds, Bars)
    assert isinstance(table, Table)
    names = parameters.array.axes[1].labels
    costs = {
        layer.name.removeprefix("encoder.blocks."): (layer.parameters, layer.multiply_adds)
        for layer in layers
    }
    shown = zip(parameters.array.values[0].tolist(), adds.array.values[0].tolist(), strict=True)
    assert [costs[name] for name in names] == [*shown]
    count = sum(parameter.numel() for parameter in model.parameters())
    assert parameters.array.values.sum() == payload.values["parameters"] == count
    assert dict(payload.facts)["parameters"] == f"{count:,}"
    assert table.rows[-1][0] == "total"
