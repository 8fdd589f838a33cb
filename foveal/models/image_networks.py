"""Image networks by name: convolutional networks and Transformers, as published."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, Protocol, runtime_checkable

import torch
from torch import nn

from foveal.config import ConfigError, suggest
from foveal.encoders.image import ImageEncoder
from foveal.encoders.patches import PatchEncoder
from foveal.layers.vision.norm2d import Norm2d, replace_batch_norm
from foveal.models.airbench import AirbenchNetwork
from foveal.models.depthwise_networks import EFFICIENTNET_LITE0, ConvNeXt
from foveal.models.handcrafted import (
    COLOR_HISTOGRAM,
    HOG,
    PATCH_SIMILARITIES,
    VISUAL_WORDS,
    HandcraftedNetwork,
)
from foveal.models.network_registry import NETWORKS, ModuleNetwork, with_settings
from foveal.models.resnet import ResNet, basic_resnet, bottleneck_resnet, small_resnet
from foveal.models.sequential_networks import (
    ALEXNET,
    DEEP_MLP_NETWORK,
    LENET,
    LINEAR_NETWORK,
    MLP_NETWORK,
    SequentialNetwork,
    vgg,
)
from foveal.models.vit import VisionTransformer
from foveal.ops.activation import Activation


@runtime_checkable
class ImageNetwork(Protocol):
    """The parts of a convolutional network, which reads images of any size."""

    def make_encoder(self, channels: int, small: bool) -> ImageEncoder:
        """Make the network without its classifier.

        With `small`, for small images, the first layer is a 3x3 convolution at stride 1 without pooling.
        """

    def make_head(self, width: int, grid: tuple[int, int], classes: int, dropout: float) -> nn.Module:
        """Make the classifier for a `grid` of vectors of `width`."""


SMALL_NETWORKS: dict[str, ImageNetwork | VisionTransformer] = {
    "color-histogram": COLOR_HISTOGRAM,
    "hog": HOG,
    "visual-words": VISUAL_WORDS,
    "patch-similarities": PATCH_SIMILARITIES,
    "linear": LINEAR_NETWORK,
    "mlp": MLP_NETWORK,
    "mlp-10": DEEP_MLP_NETWORK,
    "plain-20": small_resnet(20, "none"),
    "plain-56": small_resnet(56, "none"),
    "resnet-20": small_resnet(20, "padded"),
    "resnet-20-attention": small_resnet(20, "padded", attention=2),
    "resnet-32": small_resnet(32, "padded"),
    "resnet-44": small_resnet(44, "padded"),
    "resnet-56": small_resnet(56, "padded"),
    "resnet-110": small_resnet(110, "padded"),
    "airbench": AirbenchNetwork((64, 256, 256)),
    "airbench95": AirbenchNetwork((128, 384, 384)),
    "airbench96": AirbenchNetwork((128, 384, 512), residual=True),
}
"""Networks for images of 32 by 32 pixels and ten classes."""
LARGE_NETWORKS: dict[str, ImageNetwork | VisionTransformer] = {
    "lenet-5": LENET,
    "alexnet": ALEXNET,
    "vgg-11": vgg(1, 1, 2, 2, 2),
    "vgg-13": vgg(2, 2, 2, 2, 2),
    "vgg-16": vgg(2, 2, 3, 3, 3),
    "vgg-19": vgg(2, 2, 4, 4, 4),
    "plain-18": basic_resnet((2, 2, 2, 2), "none"),
    "plain-34": basic_resnet((3, 4, 6, 3), "none"),
    "resnet-18": basic_resnet((2, 2, 2, 2)),
    "resnet-34": basic_resnet((3, 4, 6, 3)),
    "resnet-50": bottleneck_resnet((3, 4, 6, 3)),
    "resnet-101": bottleneck_resnet((3, 4, 23, 3)),
    "resnet-152": bottleneck_resnet((3, 8, 36, 3)),
    "convnext-t": ConvNeXt((3, 3, 9, 3), (96, 192, 384, 768)),
    "convnext-s": ConvNeXt((3, 3, 27, 3), (96, 192, 384, 768)),
    "convnext-b": ConvNeXt((3, 3, 27, 3), (128, 256, 512, 1024)),
    "vit-ti": VisionTransformer(192, 3),
    "vit-s": VisionTransformer(384, 6),
    "vit-b": VisionTransformer(768, 12),
    "vit-ti-mean": VisionTransformer(192, 3, "mean"),
    "vit-s-mean": VisionTransformer(384, 6, "mean"),
    "vit-b-mean": VisionTransformer(768, 12, "mean"),
    "efficientnet-lite0": EFFICIENTNET_LITE0,
}
for name, definition in (SMALL_NETWORKS | LARGE_NETWORKS).items():
    NETWORKS.add(name, definition, __name__)


ADAMW = ("optimizer.name=adamw", "optimizer.weight_decay=0.05", "optimizer.clip_norm=1.0")
DEEP_WITHOUT_NORMS = 10
"""Layers without shortcuts and norms, from which on AdamW needs a lower rate."""
DEEP_WIDE, DEEP_NARROW = 16, 30
"""Blocks of networks for large and for small images, from which on the loss explodes at the preset's rate."""


def training_settings(network: str) -> tuple[str, ...]:
    """Return the settings of the optimizer with which a network trains from scratch.

    Without batch norms, the high rates of SGD with momentum diverge. Ten layers without shortcuts, and
    the blocks of Transformers and ConvNeXt, need a lower rate still. At the rate of the preset, and in
    batches of 32 images, the loss also explodes in networks for large images of 34 layers and more, in
    EfficientNet-Lite0, and in ResNet-110, whose first 400 steps He et al. 2015 (4.2) take at 0.01. Other
    networks with batch norms train with the settings of the preset, so none are returned.
    """
    definition = NETWORKS[network]
    if isinstance(definition, ModuleNetwork):
        return (*ADAMW, "optimizer.lr=1e-3")
    if isinstance(definition, ConvNeXt | VisionTransformer):
        return (*ADAMW, "optimizer.lr=3e-4")
    if isinstance(definition, SequentialNetwork):
        return (*ADAMW, f"optimizer.lr={'3e-4' if definition.depth >= DEEP_WITHOUT_NORMS else '1e-3'}")
    if isinstance(definition, HandcraftedNetwork) or definition is EFFICIENTNET_LITE0:
        return (*ADAMW, "optimizer.lr=1e-3")
    if isinstance(definition, ResNet) and definition.pooled and sum(definition.depths) >= DEEP_WIDE:
        return (*ADAMW, "optimizer.lr=1e-3")
    if isinstance(definition, ResNet) and sum(definition.depths) >= DEEP_NARROW:
        return ("optimizer.lr=0.01",)
    return ()


def smallest_size(network: str, size: int) -> int:
    """Return `size`, or its smallest multiple by a power of 2 of which the network has a feature map."""
    with torch.device("meta"):
        encoder = image_encoder(network, 3, "published", size=size)
    while min(encoder.grid(size)) < 1:
        size *= 2
    return size


def published_input(network: str) -> tuple[int, int, int]:
    """Return channels, side in pixels, and classes of the images that a network was published for."""
    definition = NETWORKS[network]
    if isinstance(definition, ModuleNetwork):
        return definition.channels, definition.size, definition.classes
    if definition is LENET:
        return 1, 32, 10
    return (3, 32, 10) if network in SMALL_NETWORKS else (3, 224, 1000)


Nonlinearity = Literal["published"] | Activation
Normalization = Literal["published"] | Norm2d
NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})


def image_encoder(
    network: str,
    channels: int,
    stem: Literal["published", "small"],
    nonlinearity: Nonlinearity = "published",
    size: int = 224,
    normalization: Normalization = "published",
    settings: Mapping[str, Any] = NO_SETTINGS,
) -> ImageEncoder | PatchEncoder:
    """Make the named network without its classifier, for images of `channels`.

    The small stem, for images of about 32 pixels, is a 3x3 convolution at stride 1 without pooling, or for
    Transformers patches of 4x4. Networks that were published with a small stem do not change. A Transformer
    reads images of `size` by `size` pixels only. `settings` are those of the network's own section.

    Raises: ConfigError: the name is unknown, or the image size is not a multiple of a Transformer's patch
    size.
    Raises: ConfigError: the network can't have another nonlinearity, or has no batch norms to replace.
    """
    if network not in NETWORKS:
        raise ConfigError(f"model.encoder.network: unknown network '{network}'{suggest(network, NETWORKS)}")
    definition, small = with_settings(_image_network(network, nonlinearity), settings), stem == "small"
    encoder: ImageEncoder | PatchEncoder
    if isinstance(definition, VisionTransformer):
        encoder = definition.make_encoder(channels, small, size)
    else:
        encoder = definition.make_encoder(channels, small)
    if normalization != "published" and not replace_batch_norm(encoder, normalization):
        raise ConfigError(
            f"model.encoder.network_norm={normalization}: {network} has no batch norms; set it to published"
        )
    return encoder


def output_grid(
    network: str, encoder: ImageEncoder | PatchEncoder, size: int | tuple[int, int]
) -> tuple[int, int]:
    """Return the number of rows and columns of the last feature map.

    `size` is the side of the images in pixels, or their rows and columns.

    Raises: ConfigError: the images are too small for the network.
    """
    rows, columns = size if isinstance(size, tuple) else (size, size)
    grid = encoder.grid(rows)[0], encoder.grid(columns)[1]
    if min(grid) < 1:
        raise ConfigError(
            f"images of {rows}x{columns} are too small for model.encoder.network={network}: "
            "raise data.image.size, or use a network for small images, such as resnet-20"
        )
    return grid


def image_head(
    network: str,
    encoder: ImageEncoder | PatchEncoder,
    size: int | tuple[int, int],
    classes: int,
    dropout: float,
    nonlinearity: Nonlinearity = "published",
) -> nn.Module:
    """Make the named network's classifier for the output of its `encoder`.

    `size` is the side of the images in pixels, or their rows and columns.

    Raises: ConfigError: the images are too small for the network.
    """
    grid = output_grid(network, encoder, size)
    return _image_network(network, nonlinearity).make_head(encoder.width, grid, classes, dropout)


def _image_network(network: str, nonlinearity: Nonlinearity) -> ImageNetwork | VisionTransformer:
    definition = NETWORKS[network]
    if nonlinearity == "published":
        return definition
    if not isinstance(definition, SequentialNetwork | ResNet):
        raise ConfigError(
            f"model.encoder.network_activation={nonlinearity}: {network} has its own activation; "
            "leave it as published"
        )
    return replace(definition, activation=nonlinearity)
