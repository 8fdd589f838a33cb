"""Networks of series by name, as published."""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from torch import nn

from foveal.config import ConfigError, EncoderConfig
from foveal.encoders.conv_series import ConvSeriesEncoder
from foveal.encoders.minirocket import MiniRocketEncoder
from foveal.layers.series.blocks import InceptionModule, ResidualSeriesBlock, convolution_body
from foveal.layers.series.conv1d import SeriesConvNormAct, SeriesNorm


@runtime_checkable
class SeriesNetwork(Protocol):
    """A network that reads series of any length."""

    has_steps: ClassVar[bool]
    """Whether the memory has a vector for each step. If not, the network can't label steps."""

    def make_encoder(self, channels: int, config: EncoderConfig) -> nn.Module:
        """Make the network without its classifier.

        The encoder maps values (B, S, C) and lengths (B,) to a memory and `aux`, as `SeriesEncoder` does.
        """


@dataclass(frozen=True)
class SeriesResNet:
    """Residual blocks of `widths` channels, each with convolutions of `kernels` (Wang, Yan and Oates 2017).

    "Time series classification from scratch with deep neural networks", 3 and figure 1 (c). As in their
    code, the last convolution of a block has no activation before the sum. Their biases before a norm, which
    the norm cancels, are left out. A shortcut is a norm, behind a convolution of single steps where the
    width changes.
    """

    widths: tuple[int, ...] = (64, 128, 128)
    kernels: tuple[int, ...] = (8, 5, 3)
    has_steps: ClassVar[bool] = True

    def make_encoder(self, channels: int, config: EncoderConfig) -> ConvSeriesEncoder:
        blocks, d_in = list[nn.Module](), channels
        for width in self.widths:
            same = d_in == width
            shortcut = SeriesNorm(width) if same else SeriesConvNormAct(d_in, width, 1, activation=None)
            blocks.append(ResidualSeriesBlock(convolution_body(d_in, width, self.kernels), shortcut))
            d_in = width
        return ConvSeriesEncoder(channels, blocks, d_in)


@dataclass(frozen=True)
class InceptionTime:
    """Inception modules with a shortcut around every third (Ismail Fawaz et al. 2020, "InceptionTime").

    A single network; the published classifier is the mean of five.
    """

    depth: int = 6
    width: int = 32
    """Channels of each branch of a module."""
    bottleneck: int = 32
    kernels: tuple[int, ...] = (40, 20, 10)
    modules_in_shortcut: int = 3
    has_steps: ClassVar[bool] = True

    def make_encoder(self, channels: int, config: EncoderConfig) -> ConvSeriesEncoder:
        blocks, d_in = list[nn.Module](), channels
        for _ in range(self.depth // self.modules_in_shortcut):
            body, inner = list[nn.Module](), d_in
            for _ in range(self.modules_in_shortcut):
                module = InceptionModule(inner, self.width, self.bottleneck, self.kernels)
                body.append(module)
                inner = module.d_out
            blocks.append(ResidualSeriesBlock(body, SeriesConvNormAct(d_in, inner, 1, activation=None)))
            d_in = inner
        return ConvSeriesEncoder(channels, blocks, d_in)


@dataclass(frozen=True)
class MiniRocket:
    """Fixed convolutions with thresholds from training series, for a linear classifier (Dempster 2021)."""

    has_steps: ClassVar[bool] = False

    def make_encoder(self, channels: int, config: EncoderConfig) -> MiniRocketEncoder:
        return MiniRocketEncoder(channels)


SERIES_NETWORKS: dict[str, SeriesNetwork] = {
    "resnet-1d": SeriesResNet(),
    "inception-time": InceptionTime(),
    "minirocket": MiniRocket(),
}
"""Networks of series by their names, for `model.encoder.network`."""


def series_network(name: str) -> SeriesNetwork:
    """Return the network with a name.

    Raises: ConfigError: the name is unknown.
    """
    if name not in SERIES_NETWORKS:
        raise ConfigError(
            f"model.encoder.network={name} is no network of series; set it to {' or '.join(SERIES_NETWORKS)}"
        )
    return SERIES_NETWORKS[name]


def networks_with_steps() -> list[str]:
    """Return the names of the networks that can label steps."""
    return [name for name, network in SERIES_NETWORKS.items() if network.has_steps]
