"""One label for each image."""

from typing import Any

from torch import nn

from foveal.build.choices import WholeKind, some
from foveal.build.kind import Described
from foveal.config import Config
from foveal.data.images import ImageForm, ImageInputs, Images, Pictures
from foveal.data.picture_order import HeldOutPictures, PictureOrder
from foveal.data.prepared import Prepared
from foveal.encoders.image import ImageEncoder
from foveal.encoders.patches import PatchEncoder
from foveal.models.convnets import image_encoder, image_head
from foveal.models.encoder import patch_encoder
from foveal.training.watch import Watch, every_batch


def picture_encoder(config: Config) -> ImageEncoder | PatchEncoder:
    """What reads images of the size that the config says: a network by its name, or patches."""
    encoder, image = config.model.encoder, config.data.image
    if encoder.kind == "patches":
        return patch_encoder(encoder, image.channels, image.size)
    network, stem = encoder.network, encoder.stem
    return image_encoder(network, image.channels, stem, encoder.nonlinearity, image.size)


class ImageKind(WholeKind):
    usual = 10

    def __init__(self) -> None:
        super().__init__(ImageForm())

    def encoder(self, config: Config, inputs: ImageInputs | None = None) -> nn.Module:
        return picture_encoder(config)

    def head(self, config: Config, encoder: Any, classes: int) -> nn.Module:
        reader, size = config.model.encoder, config.data.image.size
        if reader.kind == "patches":
            return super().head(config, encoder, classes)
        return image_head(reader.network, encoder, size, classes, config.model.dropout, reader.nonlinearity)

    def training_order(self, config: Config, data: Images) -> PictureOrder:
        return PictureOrder(data.examples, config.data.image.batch, config.data.augment, config.training.seed)

    def once(self, config: Config, examples: Pictures) -> HeldOutPictures:
        return HeldOutPictures(examples, config.data.image)

    def found_surely(
        self, config: Config, model: Any, inputs: Any, examples: Any, watch: Watch
    ) -> tuple[list[str], list[float] | None]:
        work, order = self.task(config, model, inputs), self.once(config, examples)
        names, sure = [], []
        for batch in every_batch(order, watch):
            highest = work.predict(batch).max(1)
            names += [inputs.labels[number] for number in highest.indices.tolist()]
            sure += highest.values.tolist()
        return names, sure

    def describe(self, config: Config, data: Prepared[ImageInputs, Images]) -> Described:
        image, labels = config.data.image, data.inputs.labels
        told = f"images: {some(labels)} from {image.size} x {image.size} pixels"
        return Described("labelled images", told, len(labels), "images")
