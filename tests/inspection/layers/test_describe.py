"""The table of layers has each size in its column, and the sums below; shapes are read as written."""

import pytest
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.inspection.layers.compute import LayerSummary, summarize_layers
from foveal.inspection.layers.describe import _parse_shape, layer_rows

LAYERS = [
    LayerSummary("conv", "Conv2d", (10, 32, 30), 760, 768_000, 38_400, (5, 3)),
    LayerSummary("drop", "Dropout", (10, 32, 30), 0, 0, 38_400, (5, 3)),
    LayerSummary("pool", "MaxPool2d", (10, 16, 15), 0, 0, 9_600, (6, 4)),
    LayerSummary("norm", "BatchNorm2d", (10, 16, 15), 20, 0, 9_600, (6, 4)),
]


def test_each_size_is_in_its_column() -> None:
    """Layers that change nothing have no row, but their memory counts."""
    assert layer_rows(LAYERS) == [
        ["layer", "kind", "output", "parameters", "multiply-adds", "field", "memory"],
        ["conv", "Conv2d", "10x32x30", "760", "768,000", "5x3", "38.4 kB"],
        ["pool", "MaxPool2d", "10x16x15", "", "", "6x4", "9.6 kB"],
        ["norm", "BatchNorm2d", "10x16x15", "20", "", "6x4", "9.6 kB"],
        ["total", "", "", "780", "768,000", "", "96.0 kB"],
    ]


def test_a_shape_is_channels_height_and_width() -> None:
    assert _parse_shape("3x240x320") == (3, 240, 320)


@pytest.mark.parametrize("text", ["3x32", "2x8x8", "3x0x8", "3x8x8x8"])
def test_other_shapes_are_no_images(text: str) -> None:
    with pytest.raises(UserError, match=r"expected channels \(1 or 3\), height and width"):
        _parse_shape(text)


def test_a_share_of_an_uneven_side_is_rounded_up() -> None:
    """Two means of five pixels read three each, one of which they share."""
    (layer,) = summarize_layers(nn.AdaptiveAvgPool2d(2), (1, 5, 6))
    assert layer.field == (3, 3)


class EverySecond(nn.Module):
    """A convolution over every second position."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(1, 1, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.convolution(x[:, :, ::2])
        return y


def test_a_convolution_over_every_second_position_reaches_twice_as_far() -> None:
    fields = {layer.name: layer.field for layer in summarize_layers(EverySecond(), (1, 20))}
    assert fields["convolution"] == (5,)
