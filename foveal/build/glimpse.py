"""One label for each image, from a few glimpses of it."""

from typing import Any

from foveal.build.choices import some
from foveal.build.images import ImageKind
from foveal.build.kind import Described
from foveal.config import Config
from foveal.data.images import ImageInputs, Pictures
from foveal.data.part import Part
from foveal.data.prepared import Prepared
from foveal.models.glimpse import Glimpses
from foveal.tasks.glimpse import GlimpseTask


class GlimpseKind(ImageKind):
    """The images, labels and scores of task `images`; but no encoder, and no head."""

    def model(self, config: Config, inputs: ImageInputs) -> Any:
        return Glimpses(config.model, inputs.channels, len(inputs.labels))

    def outline(self, config: Config) -> Any:
        return Glimpses(config.model, config.data.image.channels, self.usual)

    def task(self, config: Config, model: Any, inputs: ImageInputs, shown: Any = None) -> Any:
        return GlimpseTask(model, inputs.labels, config.model.glimpse.reinforce)

    def describe(self, config: Config, data: Prepared[ImageInputs, Part[Pictures]]) -> Described:
        look, size, labels = config.model.glimpse, config.data.image.size, data.inputs.labels
        seen = f"{look.count} glimpses of {look.side} x {look.side} pixels of {size} x {size}"
        return Described("labelled images", f"glimpse: {some(labels)} from {seen}", len(labels), "images")
