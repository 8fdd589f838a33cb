"""One label for each image."""

from typing import Any

from torch import nn

from foveal.config import Config
from foveal.core.progress import ProgressCallback, iterate_batches
from foveal.data.core.prepared_data import PreparedData
from foveal.data.core.split_data import SplitData
from foveal.data.images.image_examples import (
    ImageClassificationFormat,
    ImageClassificationProcessor,
    ImageExamples,
)
from foveal.models.encoder import EncoderWithHead
from foveal.models.image_networks import image_head
from foveal.objectives.classification import ClassificationObjective
from foveal.objectives.selective import ModelWithProxy, SelectiveObjective, with_proxy
from foveal.tasks.base import TaskSummary
from foveal.tasks.image_source import ImageTask, image_encoder_for
from foveal.tasks.labeling import ClassificationTask, summarize_labels


class ImageClassificationTask(ImageTask, ClassificationTask):
    default_classes = 10

    def __init__(self) -> None:
        super().__init__(ImageClassificationFormat())

    def encoder(self, config: Config, processor: ImageClassificationProcessor | None = None) -> nn.Module:
        return image_encoder_for(config)

    def head(self, config: Config, encoder: Any, classes: int) -> nn.Module:
        reader, size = config.model.encoder, config.data.image.size
        if reader.kind == "patches":
            return super().head(config, encoder, classes)
        return image_head(
            reader.network, encoder, size, classes, config.model.dropout, reader.network_activation
        )

    def model_for_classes(self, config: Config, encoder: Any, classes: int) -> EncoderWithHead:
        model = super().model_for_classes(config, encoder, classes)
        if config.task.select_fraction == 1:
            return model
        return with_proxy(model, config.data.image.channels, config.data.image.size, classes)

    def objective(
        self, config: Config, model: EncoderWithHead, processor: Any, preview_examples: Any = None
    ) -> ClassificationObjective:
        if isinstance(model, ModelWithProxy):
            return SelectiveObjective(
                model, processor.labels, config.task.label_smoothing, config.task.select_fraction
            )
        return super().objective(config, model, processor, preview_examples)

    def predict_with_probabilities(
        self, config: Config, model: Any, processor: Any, examples: Any, progress: ProgressCallback
    ) -> tuple[list[str], list[float] | None]:
        work, order = self.objective(config, model, processor), self.example_batches(config, examples)
        names, sure = [], []
        for batch in iterate_batches(order, progress):
            highest = work.predict_batch(batch).max(1)
            names += [processor.labels[number] for number in highest.indices.tolist()]
            sure += highest.values.tolist()
        return names, sure

    def summarize(
        self, config: Config, data: PreparedData[ImageClassificationProcessor, SplitData[ImageExamples]]
    ) -> TaskSummary:
        image, labels = config.data.image, data.processor.labels
        told = f"image-classification: {summarize_labels(labels)} from {image.size} x {image.size} pixels"
        return TaskSummary("labelled images", told, len(labels), "images")
