"""One label for each image, from a few glimpses of it."""

from typing import Any

from foveal.config import Config
from foveal.data.core.prepared_data import Prepared
from foveal.data.core.split_data import Part
from foveal.data.images.image_examples import ImageInputs, Pictures
from foveal.tasks.base import Described
from foveal.tasks.glimpses.model import Glimpses
from foveal.tasks.glimpses.objective import GlimpseTask
from foveal.tasks.image_classification import ImageKind
from foveal.tasks.labeling import some


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
