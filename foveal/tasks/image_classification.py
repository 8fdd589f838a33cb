"""One label for each image."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

import torch
from pydantic import Field
from torch import Tensor, nn

from foveal.core.errors import UserError
from foveal.data.core.batching import ExampleBatch
from foveal.data.images.image_facts import image_facts
from foveal.data.open import OpenedData
from foveal.models.encoder import EncoderWithHead
from foveal.models.encoder_registry import ImageSizes
from foveal.models.image_networks import image_head, published_input
from foveal.objectives.classification import ClassificationObjective
from foveal.objectives.selective import ModelWithProxy, SelectiveObjective, match_proxy, with_proxy
from foveal.tasks.defaults import MAX_COUNTED_ROWS, Defaults, DefaultsRequest
from foveal.tasks.fit import NO_FIT, Fit
from foveal.tasks.image_defaults import image_defaults, may_start_from_weights
from foveal.tasks.shapes.image_labels import ImageLabelTask
from foveal.tasks.shapes.images import IMAGE_ENCODERS, image_encoder_for, image_sizes
from foveal.tasks.shapes.labeling import SmoothedSettings

IMAGENET_CLASSES = 1000


class ImageClassificationSettings(SmoothedSettings):
    select_fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    """Fraction of each batch that is learned: the images that a small network finds hardest."""


class ImageClassificationTask(ImageLabelTask):
    name = "image-classification"
    purpose = "Label each image."
    preset = "image-classification"
    Settings = ImageClassificationSettings
    settings: ImageClassificationSettings
    encoders = IMAGE_ENCODERS
    encoder_source = "image"
    row_unit = "images"
    datasets = ("mnist", "fashion-mnist")
    trains_networks = True
    imports = "image-network"
    averages_views = True

    @classmethod
    def recognizes(cls, data: OpenedData, named: Mapping[str, object]) -> Fit:
        """Return 1 for images."""
        return Fit(1, data.evidence.reason) if data.kind == "images" else NO_FIT

    def defaults(self, request: DefaultsRequest) -> Defaults:
        """Return the defaults for the images; the preset's if the images can't be read."""
        data = self.config.data
        with suppress(UserError):
            facts = image_facts(request.data.train, self.target.column(data), MAX_COUNTED_ROWS)
            pretrained = may_start_from_weights(request, data.image.channels)
            request = replace(request, pretrained=pretrained)
            return image_defaults(facts, request, self.preset, data.image.batch_size)
        return Defaults(self.preset)

    def settings_read(self) -> set[str]:
        has_own_head = self.config.model.encoder.kind == "image"  # a named network brings its classifier
        return super().settings_read() - ({"model.head_pooling"} if has_own_head else set())

    @property
    def source_sizes(self) -> ImageSizes:
        return image_sizes(self.config)

    def encoder(self) -> nn.Module:
        return image_encoder_for(self.config)

    def head(self, encoder: Any, classes: int) -> nn.Module:
        sizes, size = self.config.model.encoder, self.config.data.image.size
        if sizes.kind != "image":
            return super().head(encoder, classes)
        dropout = self.config.model.dropout
        return image_head(sizes.network, encoder, size, classes, dropout, sizes.network_activation)

    def model_for_classes(self, encoder: Any, classes: int) -> EncoderWithHead:
        model = super().model_for_classes(encoder, classes)
        if self.settings.select_fraction == 1:
            return model
        image = self.config.data.image
        return with_proxy(model, image.channels, image.size, classes)

    def objective(self, preview_examples: Any = None) -> ClassificationObjective:
        if isinstance(self.model, ModelWithProxy):
            labels, fraction = self.processor.target.labels, self.settings.select_fraction
            return SelectiveObjective(self.model, labels, self.label_smoothing, fraction)
        return super().objective(preview_examples)

    def adapt_weights(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights with or without a proxy, as in the model."""
        return match_proxy(self.model, tensors)

    def planned_sizes(self) -> dict[str, int]:
        """Return the classes that a named network was published for, or those of ImageNet."""
        encoder = self.config.model.encoder
        return {
            "classes": published_input(encoder.network)[2] if encoder.kind == "image" else IMAGENET_CLASSES
        }

    @property
    def row_size(self) -> int:
        return 1

    def longest_batch(self, rows: int) -> ExampleBatch:
        image, numbers = self.config.data.image, torch.arange(rows)
        columns = {
            "source": torch.zeros(rows, image.channels, image.size, image.size),
            "label": torch.zeros_like(numbers),
        }
        return ExampleBatch(numbers, columns, {}, torch.ones_like(numbers))

    def reset_head(self) -> None:
        """Set the projection to zero, so that the first loss is `ln C` (Dosovitskiy et al. 2021, 3.1)."""
        nn.init.zeros_(self.model.get_parameter("head.projection.weight"))
