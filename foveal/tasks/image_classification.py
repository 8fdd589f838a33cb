"""One label for each image."""

from typing import Any

from torch import nn

from foveal.config import Config, ConfigError
from foveal.core.progress import Watch, every_batch
from foveal.data.core.prepared_data import Prepared
from foveal.data.core.split_data import Part
from foveal.data.images.image_examples import ImageForm, ImageInputs, Pictures
from foveal.models.airbench import PROXY
from foveal.models.encoder import Encoded
from foveal.models.image_networks import image_head
from foveal.objectives.classification import ClassifyTask
from foveal.objectives.selective import HardestTask
from foveal.objectives.selective_model import Proxied
from foveal.tasks.base import Described
from foveal.tasks.image_source import PicturedKind, picture_encoder
from foveal.tasks.labeling import WholeKind, some


class ImageKind(PicturedKind, WholeKind):
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

    def of_classes(self, config: Config, encoder: Any, classes: int) -> Encoded:
        model = super().of_classes(config, encoder, classes)
        if config.task.hardest == 1:
            return model
        small, size = PROXY.encoder(config.data.image.channels, small=True), config.data.image.size
        if min(small.grid(size)) < 1:
            raise ConfigError(
                f"task.hardest: images of {size}x{size} are too small for its proxy: "
                "raise data.image.size, or leave task.hardest out"
            )
        return Proxied(model, Encoded(small, PROXY.head(small.width, (1, 1), classes, 0.0)))

    def task(self, config: Config, model: Encoded, inputs: Any, shown: Any = None) -> ClassifyTask:
        if isinstance(model, Proxied):
            return HardestTask(model, inputs.labels, config.task.smoothing, config.task.hardest)
        return super().task(config, model, inputs, shown)

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

    def describe(self, config: Config, data: Prepared[ImageInputs, Part[Pictures]]) -> Described:
        image, labels = config.data.image, data.inputs.labels
        told = f"images: {some(labels)} from {image.size} x {image.size} pixels"
        return Described("labelled images", told, len(labels), "images")
