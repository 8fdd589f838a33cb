"""Tasks that read single images, with any target."""

from abc import ABC
from typing import Any, ClassVar

from foveal.config import Config
from foveal.data.images.image_source import ImageSource
from foveal.data.pairs.source import Source
from foveal.models.encoder_registry import ImageSizes, make_encoder
from foveal.tasks.shapes.examples import ExampleTask

IMAGE_ENCODERS = ("image", "patches")
"""The kinds of encoder that read an image."""


def image_sizes(config: Config) -> ImageSizes:
    """Return the sizes of images as configured."""
    return ImageSizes(config.data.image.channels, config.data.image.size)


def image_encoder_for(config: Config) -> Any:
    """Return the encoder for images of the configured size: a published network, patches, or a plugin's."""
    return make_encoder(config.model.encoder, image_sizes(config))


def sees_several_views(config: Config) -> bool:
    """Return whether several views of each held-out image are read."""
    return config.data.image.tta != "none" or config.data.image.tta_scales != "1"


def check_single_view(config: Config, source: str) -> None:
    """Check that no setting mixes images, or uses several views of an image. The error names `source`.

    Raises: ValueError: a setting does.
    """
    if config.data.augment.mixup or sees_several_views(config):
        raise ValueError(
            f"a {source} is of one view of one image: leave out data.augment.mixup, data.image.tta and "
            "data.image.tta_scales"
        )


class ImageTask(ExampleTask, ABC):
    """Base class of tasks whose examples are images, which are augmented in training."""

    source: ClassVar[Source[Any]] = ImageSource()
    source_kind = "image"
    batch_setting = "data.image.batch_size"

    def source_in_words(self) -> str:
        """Return the size of the images that the model reads."""
        size = self.config.data.image.size
        return f"{size} x {size} pixels"
