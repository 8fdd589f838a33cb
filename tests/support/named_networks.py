"""A named network with its head, and the logits of images."""

from typing import Any

from torch import Tensor

from foveal.models.encoder import EncoderWithHead
from foveal.models.image_networks import image_encoder, image_head


def make_network(network: str, size: int, classes: int, stem: Any = "published") -> EncoderWithHead:
    encoder = image_encoder(network, 1 if network == "lenet-5" else 3, stem, size=size)
    return EncoderWithHead(encoder, image_head(network, encoder, size, classes, 0.0))


def logits(model: EncoderWithHead, images: Tensor) -> Tensor:
    memory, _ = model.encoder(images)
    features, _ = model.head(memory)
    return model.head.project(features)
