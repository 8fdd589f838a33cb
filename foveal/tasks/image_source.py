"""What reads single images, whatever is made of them."""

from abc import ABC
from typing import Any

from foveal.config import Config
from foveal.data.images.image_batches import ImageEvalBatches, ImageTrainBatches
from foveal.data.images.image_examples import ImageExamples
from foveal.encoders.image import ImageEncoder
from foveal.encoders.patches import PatchEncoder
from foveal.models.encoder import patch_encoder
from foveal.models.image_networks import image_encoder
from foveal.tasks.examples import ExampleTask


def image_encoder_for(config: Config) -> ImageEncoder | PatchEncoder:
    """What reads images of the size that the config says: a network by its name, or patches."""
    encoder, image = config.model.encoder, config.data.image
    if encoder.kind == "patches":
        return patch_encoder(encoder, image.channels, image.size)
    network, stem = encoder.network, encoder.stem
    return image_encoder(
        network, image.channels, stem, encoder.network_activation, image.size, encoder.network_norm
    )


class ImageTask(ExampleTask, ABC):
    """Examples are images, one each: trained on as they are augmented, held out as they are."""

    def train_batches(self, config: Config, data: Any) -> ImageTrainBatches:
        return ImageTrainBatches(
            data.examples, config.data.image.batch_size, config.data.augment, config.training.seed
        )

    def example_batches(self, config: Config, examples: ImageExamples) -> ImageEvalBatches:
        return ImageEvalBatches(examples, config.data.image)
