"""What reads single images, whatever is made of them."""

from abc import ABC
from typing import Any

from foveal.config import Config
from foveal.data.images.image_batches import HeldOutPictures, PictureOrder
from foveal.data.images.image_examples import Pictures
from foveal.encoders.image import ImageEncoder
from foveal.encoders.patches import PatchEncoder
from foveal.models.encoder import patch_encoder
from foveal.models.image_networks import image_encoder
from foveal.tasks.examples import ExampleKind


def picture_encoder(config: Config) -> ImageEncoder | PatchEncoder:
    """What reads images of the size that the config says: a network by its name, or patches."""
    encoder, image = config.model.encoder, config.data.image
    if encoder.kind == "patches":
        return patch_encoder(encoder, image.channels, image.size)
    network, stem = encoder.network, encoder.stem
    return image_encoder(
        network, image.channels, stem, encoder.nonlinearity, image.size, encoder.normalization
    )


class PicturedKind(ExampleKind, ABC):
    """Examples are images, one each: trained on as they are augmented, held out as they are."""

    def training_order(self, config: Config, data: Any) -> PictureOrder:
        return PictureOrder(data.examples, config.data.image.batch, config.data.augment, config.training.seed)

    def once(self, config: Config, examples: Pictures) -> HeldOutPictures:
        return HeldOutPictures(examples, config.data.image)
